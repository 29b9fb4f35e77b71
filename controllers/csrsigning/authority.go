// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package csrsigning

import (
	"crypto"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"

	"k8s.io/client-go/util/keyutil"
)

// Authority is a certificate authority: a certificate and its private key.
type Authority struct {
	certificate *x509.Certificate
	key         crypto.Signer
}

// ParseAuthority reads an authority from PEM: one certificate that may sign others, and
// its private key, RSA, ECDSA or Ed25519, not encrypted. Errors hold nothing of either.
func ParseAuthority(certificate, key []byte) (Authority, error) {
	var a Authority
	for rest := certificate; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			continue
		}
		if a.certificate != nil {
			return Authority{}, errors.New("it holds more than one certificate; give the one that signs")
		}
		parsed, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return Authority{}, err
		}
		a.certificate = parsed
	}
	if a.certificate == nil {
		return Authority{}, errors.New("it holds no certificate in PEM")
	}
	if a.certificate.BasicConstraintsValid && !a.certificate.IsCA {
		return Authority{}, errors.New("its certificate is not that of a certificate authority; no client would trust what it signs")
	}
	private, err := keyutil.ParsePrivateKeyPEM(key)
	if err != nil {
		return Authority{}, errors.New("its key is no private key in PEM, or is encrypted")
	}
	signer, ok := private.(crypto.Signer)
	if !ok {
		return Authority{}, fmt.Errorf("its key is of a kind that cannot sign: %T", private)
	}
	public, ok := a.certificate.PublicKey.(interface{ Equal(crypto.PublicKey) bool })
	if !ok || !public.Equal(signer.Public()) {
		return Authority{}, errors.New("its key is not the one of its certificate")
	}
	a.key = signer
	return a, nil
}

// Source returns an authority as it is now. The controller calls it before each
// signature. It must be safe for concurrent use. Its errors must not hold key material.
type Source func() (Authority, error)

// Files is the authority in two files, which are read each time.
func Files(certificate, key string) Source {
	return func() (Authority, error) {
		certPEM, err := os.ReadFile(certificate)
		if err != nil {
			return Authority{}, fmt.Errorf("reading the certificate authority: %w", err)
		}
		keyPEM, err := os.ReadFile(key)
		if err != nil {
			return Authority{}, fmt.Errorf("reading the key of the certificate authority: %w", err)
		}
		a, err := ParseAuthority(certPEM, keyPEM)
		if err != nil {
			return Authority{}, fmt.Errorf("reading the certificate authority %s with key %s: %w", certificate, key, err)
		}
		return a, nil
	}
}
