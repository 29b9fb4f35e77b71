// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"net"
	"net/http"
	"slices"
)

// TLS says how connections are encrypted. The zero value is TLS 1.2 or later with Go's choice of
// ciphers, and HTTP/2.
type TLS struct {
	// MinVersion is the oldest version of TLS that is accepted. Clients choose from
	// CipherSuites and Curves, which are numbers of crypto/tls.
	MinVersion   uint16
	CipherSuites []uint16
	Curves       []tls.CurveID

	// Names are certificates for clients that name one of their hosts, the first that fits.
	Names []NamedCertificate

	// NoHTTP2 leaves HTTP/1.1 alone. MaxStreams is how many requests a client may have in
	// progress on a connection of HTTP/2; 0 is Go's choice.
	NoHTTP2    bool
	MaxStreams int
}

// NamedCertificate is a certificate for the hosts that Names or the certificate itself lists.
type NamedCertificate struct {
	CertFile, KeyFile string
	Names             []string // a name may begin with "*."; none: those of the certificate
}

// into sets the options in a configuration of a server.
func (t *TLS) into(config *tls.Config, log *slog.Logger) error {
	if t.MinVersion != 0 {
		config.MinVersion = t.MinVersion
	}
	config.CipherSuites, config.CurvePreferences = t.CipherSuites, t.Curves
	if !t.NoHTTP2 && t.fitsHTTP2() {
		config.NextProtos = []string{"h2", "http/1.1"}
	}
	return t.addNames(config, log)
}

// fitsHTTP2 reports whether the cipher suites have one that clients of HTTP/2 insist on. The
// suites of TLS 1.3 all are; CipherSuites does not choose among them.
// Source: RFC 9113, section 9.2.2.
func (t *TLS) fitsHTTP2() bool {
	return len(t.CipherSuites) == 0 || t.MinVersion == tls.VersionTLS13 || slices.ContainsFunc(t.CipherSuites, func(s uint16) bool {
		return s == tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 || s == tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256
	})
}

// addNames makes the certificates with names take precedence.
func (t *TLS) addNames(config *tls.Config, log *slog.Logger) error {
	if len(t.Names) == 0 {
		return nil
	}
	var named []*keyPair
	var names [][]string
	for _, n := range t.Names {
		pair, err := newKeyPair(n.CertFile, n.KeyFile, log)
		if err != nil {
			return err
		}
		named, names = append(named, pair), append(names, n.Names)
	}
	otherwise := config.GetCertificate
	config.GetCertificate = func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
		for i, pair := range named {
			if c := pair.get(); fits(c, names[i], hello.ServerName) {
				return c, nil
			}
		}
		if otherwise == nil {
			return nil, nil //nolint:nilnil // as crypto/tls has it: take the one of the configuration
		}
		return otherwise(hello)
	}
	return nil
}

// fits reports whether a certificate is for a host: by the given names, or else by its own.
func fits(c *tls.Certificate, names []string, host string) bool {
	if host == "" {
		return false
	}
	leaf := c.Leaf
	if len(names) > 0 {
		leaf = &x509.Certificate{DNSNames: names, NotAfter: c.Leaf.NotAfter, Raw: c.Leaf.Raw}
		for _, name := range names {
			if ip := net.ParseIP(name); ip != nil {
				leaf.IPAddresses = append(leaf.IPAddresses, ip)
			}
		}
	}
	return leaf.VerifyHostname(host) == nil
}

// streams sets the limits of HTTP/2 of a server.
func (t *TLS) streams(server *http.Server) {
	if t.MaxStreams > 0 {
		server.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: t.MaxStreams}
	}
}
