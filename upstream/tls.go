package upstream

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
)

// isTLSError reports whether the connection failed in its handshake, before any
// request could be written.
func isTLSError(err error) bool {
	var verify *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	var alert tls.AlertError
	var unknown x509.UnknownAuthorityError
	var host x509.HostnameError
	return errors.As(err, &verify) || errors.As(err, &record) || errors.As(err, &alert) || errors.As(err, &unknown) || errors.As(err, &host)
}
