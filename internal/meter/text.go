package meter

import (
	"math"
	"strconv"
	"strings"
)

// AppendText writes families in the text format 0.0.4 of Prometheus.
func AppendText(dst []byte, families []Family) []byte {
	for i := range families {
		dst = appendFamily(dst, &families[i])
	}
	return dst
}

func appendFamily(dst []byte, f *Family) []byte {
	if f.Help != "" {
		dst = append(appendEscaped(append(dst, "# HELP "+f.Name+" "...), f.Help, false), '\n')
	}
	dst = append(dst, "# TYPE "+f.Name+" "+string(f.Kind)+"\n"...)
	for i := range f.Samples {
		dst = appendSample(dst, f, &f.Samples[i])
	}
	return dst
}

func appendSample(dst []byte, f *Family, s *Sample) []byte {
	switch f.Kind {
	case KindHistogram:
		var below uint64
		for i, n := range s.Counts {
			below += n
			bound := math.Inf(1)
			if i < len(f.Bounds) {
				bound = f.Bounds[i]
			}
			dst = appendLine(dst, f, s, "_bucket", "le", bound, float64(below))
		}
	case KindSummary:
		for i, v := range s.Quantiles {
			dst = appendLine(dst, f, s, "", "quantile", f.Bounds[i], v)
		}
	default:
		return appendLine(dst, f, s, "", "", 0, s.Value)
	}
	dst = appendLine(dst, f, s, "_sum", "", 0, s.Sum)
	return appendLine(dst, f, s, "_count", "", 0, float64(s.Count))
}

// appendLine writes one figure; extra is a label of the format's own, with a number.
func appendLine(dst []byte, f *Family, s *Sample, suffix, extra string, at, v float64) []byte {
	dst = append(append(dst, f.Name...), suffix...)
	open := byte('{')
	for i, value := range s.Values {
		dst = append(append(append(dst, open), f.Labels[i]...), `="`...)
		dst = append(appendEscaped(dst, value, true), '"')
		open = ','
	}
	if extra != "" {
		dst = append(append(append(dst, open), extra...), `="`...)
		dst = append(appendFloat(dst, at), '"')
		open = ','
	}
	if open == ',' {
		dst = append(dst, '}')
	}
	return append(appendFloat(append(dst, ' '), v), '\n')
}

// appendEscaped writes a help text or, with quotes, the value of a label. What is no
// UTF-8 is replaced: a reader would refuse the whole page.
func appendEscaped(dst []byte, v string, quotes bool) []byte {
	v = strings.ToValidUTF8(v, "\uFFFD")
	for i := range len(v) {
		switch c := v[i]; {
		case c == '\n':
			dst = append(dst, `\n`...)
		case c == '\\' || quotes && c == '"':
			dst = append(dst, '\\', c)
		default:
			dst = append(dst, c)
		}
	}
	return dst
}

func appendFloat(dst []byte, v float64) []byte {
	if v == 0 {
		return append(dst, '0') // also when it is negative
	}
	return strconv.AppendFloat(dst, v, 'g', -1, 64)
}
