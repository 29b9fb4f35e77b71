// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"path/filepath"
	"time"

	"github.com/setpoint-io/setpoint/internal/ownfile"
)

// Validity as kubeadm sets it (CACertificateValidityPeriod,
// CertificateValidityPeriod and CertificateBackdate of its API, v1.37): the
// back-dating lets clients whose clock is a little behind connect.
const (
	authorityValidity = 10 * 365 * 24 * time.Hour
	leafValidity      = 365 * 24 * time.Hour
	backdate          = 5 * time.Minute
)

const (
	certSuffix = ".crt"
	keySuffix  = ".key"

	// maxKeyFile bounds what is read of a certificate or key, in bytes.
	maxKeyFile = 1 << 20
)

// pki is a control plane's keys and certificates. The authorities and the service-account
// key live as long as the data directory; every other certificate is issued again at each
// start, so none expires between two starts. All keys are ECDSA P-256: Kubernetes accepts
// them everywhere, and making one takes microseconds where RSA takes a good part of a
// second.
type pki struct {
	dir        *ownfile.Dir
	cluster    *authority // signs the serving certificate and all users
	frontProxy *authority // signs the API server's identity towards aggregated API servers
	now        func() time.Time
}

// An authority is a certificate authority with its key.
type authority struct {
	cert    *x509.Certificate
	certPEM []byte
	key     crypto.Signer
}

type keyPair struct{ certPEM, keyPEM []byte }

// openPKI loads the authorities and the service-account key from dir, or makes
// those that do not exist yet, and writes the certificates of this start.
// names are the host names and IP addresses that clients may call the API
// servers by.
func openPKI(dir *ownfile.Dir, names []string, now func() time.Time) (*pki, error) {
	p := &pki{dir: dir, now: now}
	var err error
	if p.cluster, err = p.openAuthority("ca", "setpoint-ca"); err != nil {
		return nil, err
	}
	if p.frontProxy, err = p.openAuthority("front-proxy-ca", "setpoint-front-proxy-ca"); err != nil {
		return nil, err
	}
	if err := p.openServiceAccountKey(); err != nil {
		return nil, err
	}
	serving := x509.Certificate{
		Subject:     pkix.Name{CommonName: "kube-apiserver"},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, n := range names {
		if ip := net.ParseIP(n); ip != nil {
			serving.IPAddresses = append(serving.IPAddresses, ip)
		} else {
			serving.DNSNames = append(serving.DNSNames, n)
		}
	}
	if err := p.writeLeaf("apiserver", p.cluster, serving); err != nil {
		return nil, err
	}
	if err := p.writeLeaf(frontProxyClient, p.frontProxy, clientTemplate(frontProxyClient)); err != nil {
		return nil, err
	}
	return p, p.writeLeaf(kubeletClient, p.cluster, clientTemplate(kubeletClientUser))
}

func (p *pki) certFile(name string) string { return filepath.Join(p.dir.Path(), name+certSuffix) }
func (p *pki) keyFile(name string) string  { return filepath.Join(p.dir.Path(), name+keySuffix) }

// client issues a certificate for a user. Kubernetes reads the user's name
// from the common name and the groups from the organizations.
func (p *pki) client(user string, groups ...string) (keyPair, error) {
	return p.issue(p.cluster, clientTemplate(user, groups...))
}

func clientTemplate(user string, groups ...string) x509.Certificate {
	return x509.Certificate{
		Subject:     pkix.Name{CommonName: user, Organization: groups},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
}

func (p *pki) openAuthority(name, commonName string) (*authority, error) {
	certPEM, certErr := p.dir.Read(name+certSuffix, maxKeyFile)
	keyPEM, keyErr := p.dir.Read(name+keySuffix, maxKeyFile)
	if errors.Is(certErr, fs.ErrNotExist) && errors.Is(keyErr, fs.ErrNotExist) {
		return p.createAuthority(name, commonName)
	}
	if err := errors.Join(certErr, keyErr); errors.Is(err, ownfile.ErrNotOwn) {
		return nil, untrusted(err)
	} else if err != nil {
		return nil, fmt.Errorf("reading certificate authority: %w; restore the missing file, or delete both to make new ones, which ends the validity of every kubeconfig they signed", err)
	}
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return nil, fmt.Errorf("reading certificate authority %s: %w; restore both files, or delete both to make new ones, which ends the validity of every kubeconfig they signed", p.certFile(name), err)
	}
	if !pair.Leaf.IsCA {
		return nil, fmt.Errorf("reading certificate authority %s: it is not a certificate authority; restore both files, or delete both to make new ones, which ends the validity of every kubeconfig they signed", p.certFile(name))
	}
	signer, ok := pair.PrivateKey.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("reading certificate authority %s: its key cannot sign; restore it from a backup", p.keyFile(name))
	}
	a := &authority{cert: pair.Leaf, certPEM: certPEM, key: signer}
	return a, p.checkValidity(name, a.cert)
}

func (p *pki) checkValidity(name string, cert *x509.Certificate) error {
	now := p.now()
	if now.Before(cert.NotBefore) {
		return fmt.Errorf("%w: %s is valid from %s, this machine's clock says %s; set the clock right",
			ErrCertificateTime, p.certFile(name), cert.NotBefore.Format(time.RFC3339), now.UTC().Format(time.RFC3339))
	}
	if now.After(cert.NotAfter) {
		return fmt.Errorf("%w: %s expired at %s, this machine's clock says %s; if the clock is right, delete %s and its .key file to make a new authority, which ends the validity of every kubeconfig it signed",
			ErrCertificateTime, p.certFile(name), cert.NotAfter.Format(time.RFC3339), now.UTC().Format(time.RFC3339), p.certFile(name))
	}
	return nil
}

func (p *pki) createAuthority(name, commonName string) (*authority, error) {
	key, keyPEM, err := newKey()
	if err != nil {
		return nil, err
	}
	now := p.now()
	template := x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: commonName},
		NotBefore:             now.Add(-backdate),
		NotAfter:              now.Add(authorityValidity),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign | x509.KeyUsageDigitalSignature,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	der, err := x509.CreateCertificate(rand.Reader, &template, &template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("creating certificate authority %s: %w", name, err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("creating certificate authority %s: %w", name, err)
	}
	a := &authority{cert: cert, certPEM: pemBlock("CERTIFICATE", der), key: key}
	// The certificate last: a start that ends between the two leaves a key without a
	// certificate, which is an error that names it, instead of a certificate without its
	// key.
	if err := writeFile(p.keyFile(name), keyPEM); err != nil {
		return nil, err
	}
	return a, writeFile(p.certFile(name), a.certPEM)
}

func (p *pki) issue(a *authority, template x509.Certificate) (keyPair, error) {
	key, keyPEM, err := newKey()
	if err != nil {
		return keyPair{}, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return keyPair{}, fmt.Errorf("issuing a certificate for %q: %w", template.Subject.CommonName, err)
	}
	now := p.now()
	template.SerialNumber = serial
	template.NotBefore = latest(now.Add(-backdate), a.cert.NotBefore)
	template.NotAfter = earliest(now.Add(leafValidity), a.cert.NotAfter)
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.BasicConstraintsValid = true
	der, err := x509.CreateCertificate(rand.Reader, &template, a.cert, key.Public(), a.key)
	if err != nil {
		return keyPair{}, fmt.Errorf("issuing a certificate for %q: %w", template.Subject.CommonName, err)
	}
	return keyPair{certPEM: pemBlock("CERTIFICATE", der), keyPEM: keyPEM}, nil
}

func (p *pki) writeLeaf(name string, a *authority, template x509.Certificate) error {
	pair, err := p.issue(a, template)
	if err != nil {
		return err
	}
	if err := writeFile(p.keyFile(name), pair.keyPEM); err != nil {
		return err
	}
	return writeFile(p.certFile(name), pair.certPEM)
}

// openServiceAccountKey makes the key that signs service-account tokens unless
// it exists. kube-apiserver reads and checks the file itself.
func (p *pki) openServiceAccountKey() error {
	_, err := p.dir.Read("sa"+keySuffix, maxKeyFile)
	if errors.Is(err, ownfile.ErrNotOwn) {
		return untrusted(err)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	_, keyPEM, err := newKey()
	if err != nil {
		return err
	}
	return writeFile(p.keyFile("sa"), keyPEM)
}

func newKey() (crypto.Signer, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("making a key: %w", err)
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, nil, fmt.Errorf("encoding a key: %w", err)
	}
	return key, pemBlock("EC PRIVATE KEY", der), nil
}

func pemBlock(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func earliest(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
