package otlp

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// certificate writes a self-signed one of a client and its key into files.
func certificate(t *testing.T) (cert *x509.Certificate, certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	form := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, form, form, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	if cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	return cert, pemFile(t, "CERTIFICATE", der), pemFile(t, "PRIVATE KEY", keyDER)
}

func pemFile(t *testing.T, kind string, der []byte) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "file.pem")
	if err := os.WriteFile(name, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// A collector with a certificate of its own that wants one of us.
func TestCertificates(t *testing.T) {
	ours, certFile, keyFile := certificate(t)
	var got *http.Request
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r }))
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	clients := x509.NewCertPool()
	clients.AddCert(ours)
	srv.TLS = &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: clients}
	srv.StartTLS()
	defer srv.Close()
	env := map[string]string{
		common + "ENDPOINT": srv.URL, common + "CERTIFICATE": pemFile(t, "CERTIFICATE", srv.Certificate().Raw),
		ofTraces + "CLIENT_CERTIFICATE": certFile, ofTraces + "CLIENT_KEY": keyFile, common + "HEADERS": "x-key=k",
	}
	send := func(signal Signal) error {
		to, err := TargetOf(signal, &Settings{Env: lookup(env)})
		if err != nil {
			t.Fatal(err)
		}
		c := NewClient(to, "usher/1")
		defer c.Close()
		c.Hurry()
		return c.Send(t.Context(), []byte("x"))
	}
	if err := send(Traces); err != nil {
		t.Fatal(err)
	}
	if got.URL.Path != "/v1/traces" || got.Header.Get("User-Agent") != "usher/1" || got.Header.Get("X-Key") != "k" ||
		got.Header.Get("Content-Type") != "application/x-protobuf" {
		t.Errorf("%s %v", got.URL, got.Header)
	}
	if err := send(Metrics); err == nil {
		t.Error("without a certificate of ours it was sent as well")
	}
	env[common+"ENDPOINT"] = "http://127.0.0.1:1"
	if to, err := TargetOf(Traces, &Settings{Env: lookup(env)}); err == nil {
		t.Errorf("certificates, but no TLS: %v", to)
	}
}
