// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
)

// TLS says how connections are encrypted. The zero value is what Go thinks best, TLS 1.2 or
// later, with HTTP/2.
type TLS struct {
	// MinVersion is the oldest version of TLS that is accepted, and CipherSuites and Curves
	// are what clients may choose from, by their numbers in crypto/tls.
	MinVersion   uint16
	CipherSuites []uint16
	Curves       []tls.CurveID

	// Names are certificates for clients that name one of their hosts, the first that fits.
	Names []NamedCertificate

	// NoHTTP2 has HTTP/1.1 spoken alone. MaxStreams is how many requests a client may have
	// under way on a connection of HTTP/2; 0 is Go's choice.
	NoHTTP2    bool
	MaxStreams int
}

// NamedCertificate is a certificate for some names, or for those that it has.
type NamedCertificate struct {
	CertFile, KeyFile string
	Names             []string // a name may begin with "*."; none: those of the certificate
}

// into changes a configuration of a server.
func (t *TLS) into(config *tls.Config) error {
	if t.MinVersion != 0 {
		config.MinVersion = t.MinVersion
	}
	config.CipherSuites, config.CurvePreferences = t.CipherSuites, t.Curves
	if !t.NoHTTP2 && t.fitsHTTP2() {
		config.NextProtos = []string{"h2", "http/1.1"}
	}
	return t.addNames(config)
}

// fitsHTTP2 reports whether there is a cipher suite that HTTP/2 can be spoken with, as its
// clients insist on. Those of TLS 1.3 can, and are not chosen by CipherSuites.
// Source: RFC 9113, section 9.2.2.
func (t *TLS) fitsHTTP2() bool {
	return len(t.CipherSuites) == 0 || t.MinVersion == tls.VersionTLS13 || slices.ContainsFunc(t.CipherSuites, func(s uint16) bool {
		return s == tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 || s == tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256
	})
}

// addNames has the certificates with names come before the others.
func (t *TLS) addNames(config *tls.Config) error {
	if len(t.Names) == 0 {
		return nil
	}
	var named []*tls.Certificate
	var names [][]string
	for _, n := range t.Names {
		c, err := tls.LoadX509KeyPair(n.CertFile, n.KeyFile)
		if err != nil {
			return err
		}
		named, names = append(named, &c), append(names, n.Names)
	}
	otherwise := config.GetCertificate
	config.GetCertificate = func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
		for i, c := range named {
			if fits(c, names[i], hello.ServerName) {
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

// fits reports whether a certificate is for a host: by the names that it was given, else by
// its own.
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

// streams has a server keep to the limits of HTTP/2.
func (t *TLS) streams(server *http.Server) {
	if t.MaxStreams > 0 {
		server.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: t.MaxStreams}
	}
}

// pairName is what the files of CertDir are called.
// Source: k8s.io/kubernetes/cmd/kube-controller-manager/app/options, PairName.
const pairName = "kube-controller-manager"

// inCertDir has the certificate kept in CertDir: that which is there, or one that is made now.
func (s *serving) inCertDir() error {
	if s.CertDir == "" || s.CertFile != "" {
		return nil
	}
	certFile, keyFile := filepath.Join(s.CertDir, pairName+".crt"), filepath.Join(s.CertDir, pairName+".key")
	_, noCert := os.Stat(certFile)
	_, noKey := os.Stat(keyFile)
	switch {
	case noCert == nil && noKey == nil:
		s.CertFile, s.KeyFile = certFile, keyFile
		return nil
	case noCert == nil:
		return fmt.Errorf("%s is there without its key, %s", certFile, keyFile)
	case noKey == nil:
		return fmt.Errorf("%s is there without its certificate, %s", keyFile, certFile)
	}
	c, err := selfMade(s.listener.Addr())
	if err != nil {
		return fmt.Errorf("making a certificate: %w", err)
	}
	key, err := x509.MarshalPKCS8PrivateKey(c.PrivateKey)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(s.CertDir, 0o750); err != nil {
		return err
	}
	if err := os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}), 0o600); err != nil {
		return err
	}
	if err := os.WriteFile(certFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Certificate[0]}), 0o644); err != nil { //nolint:gosec // it is shown to everybody
		return err
	}
	s.CertFile, s.KeyFile = certFile, keyFile
	return nil
}
