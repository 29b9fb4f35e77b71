// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// keyPair is a certificate and its key in files. The files are read once a second at most, as
// clients may connect as often as they want. While they cannot be read, or do not fit each other because only one of them has
// been replaced yet, the pair from before serves. It is safe for concurrent use.
type keyPair struct {
	cert, key string
	log       *slog.Logger

	mu   sync.Mutex
	at   time.Time // when the files were read
	pair *tls.Certificate
	said string // the error that was logged last
}

// newKeyPair returns the pair of two files, which must fit each other when the process starts.
func newKeyPair(certFile, keyFile string, log *slog.Logger) (*keyPair, error) {
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	return &keyPair{cert: certFile, key: keyFile, log: log, pair: &pair, at: time.Now()}, err
}

func (k *keyPair) get() *tls.Certificate {
	k.mu.Lock()
	defer k.mu.Unlock()
	if time.Since(k.at) < time.Second {
		return k.pair
	}
	k.at = time.Now()
	pair, err := tls.LoadX509KeyPair(k.cert, k.key)
	said := ""
	if err == nil {
		k.pair = &pair
	} else if said = err.Error(); said != k.said {
		k.log.Warn("the certificate that this port serves cannot be read; clients get that of before", "certificate", k.cert, "key", k.key, "error", err)
	}
	k.said = said
	return k.pair
}

// selfMade makes a self-signed certificate, for clients that do not verify it, such as
// kubelets.
func selfMade(address net.Addr) (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return tls.Certificate{}, err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "setpoint-manager"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.AddDate(1, 0, 0),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
	}
	if tcp, ok := address.(*net.TCPAddr); ok && !tcp.IP.IsUnspecified() {
		template.IPAddresses = append(template.IPAddresses, tcp.IP)
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key}, nil
}

// pairName is the name of the files in CertDir.
// Source: k8s.io/kubernetes/cmd/kube-controller-manager/app/options, PairName.
const pairName = "kube-controller-manager"

// inCertDir sets the files of the certificate to those in CertDir. It makes a certificate if
// there is none.
func (o *Options) inCertDir(address net.Addr) error {
	if o.CertDir == "" || o.CertFile != "" {
		return nil
	}
	certFile, keyFile := filepath.Join(o.CertDir, pairName+".crt"), filepath.Join(o.CertDir, pairName+".key")
	_, noCert := os.Stat(certFile)
	_, noKey := os.Stat(keyFile)
	switch {
	case noCert == nil && noKey == nil:
		o.CertFile, o.KeyFile = certFile, keyFile
		return nil
	case noCert == nil:
		return fmt.Errorf("%s is there without its key, %s", certFile, keyFile)
	case noKey == nil:
		return fmt.Errorf("%s is there without its certificate, %s", keyFile, certFile)
	}
	c, err := selfMade(address)
	if err != nil {
		return fmt.Errorf("making a certificate: %w", err)
	}
	key, err := x509.MarshalPKCS8PrivateKey(c.PrivateKey)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(o.CertDir, 0o750); err != nil {
		return err
	}
	if err := os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}), 0o600); err != nil {
		return err
	}
	if err := os.WriteFile(certFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Certificate[0]}), 0o644); err != nil { //nolint:gosec // every client gets it
		return err
	}
	o.CertFile, o.KeyFile = certFile, keyFile
	return nil
}
