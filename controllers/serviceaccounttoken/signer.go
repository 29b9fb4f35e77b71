// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package serviceaccounttoken

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/go-jose/go-jose/v4"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/keyutil"
)

// claims are what a token says. The names of the private ones are part of the API:
// API servers look for them when they read a token.
// Source: k8s.io/kubernetes/pkg/serviceaccount, LegacyClaims.
type claims struct {
	Issuer     string `json:"iss"`
	Subject    string `json:"sub"`
	Namespace  string `json:"kubernetes.io/serviceaccount/namespace"`
	Secret     string `json:"kubernetes.io/serviceaccount/secret.name"`
	Account    string `json:"kubernetes.io/serviceaccount/service-account.name"`
	AccountUID string `json:"kubernetes.io/serviceaccount/service-account.uid"`
}

// issuer is the claim by which an API server knows the form of the token. Source:
// k8s.io/kubernetes/pkg/serviceaccount, LegacyIssuer.
const issuer = "kubernetes/serviceaccount"

// signer makes tokens. It is safe for concurrent use.
type signer struct{ jose jose.Signer }

// newSigner reads a private key in PEM. Nothing of it stands in an error.
func newSigner(pem []byte) (*signer, error) {
	key, err := keyutil.ParsePrivateKeyPEM(pem)
	if err != nil {
		return nil, errors.New("the private key is neither an RSA nor an ECDSA key in PEM, or is encrypted")
	}
	algorithm, public, err := algorithmOf(key)
	if err != nil {
		return nil, err
	}
	id, err := keyID(public)
	if err != nil {
		return nil, err
	}
	s, err := jose.NewSigner(jose.SigningKey{
		Algorithm: algorithm,
		Key:       jose.JSONWebKey{Algorithm: string(algorithm), Key: key, KeyID: id, Use: "sig"},
	}, nil)
	if err != nil {
		return nil, fmt.Errorf("the private key cannot sign: %w", err)
	}
	return &signer{jose: s}, nil
}

// algorithmOf chooses how to sign: servers accept one way for each kind of key.
// Source: k8s.io/kubernetes/pkg/serviceaccount, jwt.go.
func algorithmOf(key any) (jose.SignatureAlgorithm, crypto.PublicKey, error) {
	switch key := key.(type) {
	case *rsa.PrivateKey:
		return jose.RS256, &key.PublicKey, nil
	case *ecdsa.PrivateKey:
		switch key.Curve {
		case elliptic.P256():
			return jose.ES256, &key.PublicKey, nil
		case elliptic.P384():
			return jose.ES384, &key.PublicKey, nil
		case elliptic.P521():
			return jose.ES512, &key.PublicKey, nil
		}
		return "", nil, fmt.Errorf("the private key is on the curve %s; use P-256, P-384 or P-521", key.Curve.Params().Name)
	}
	return "", nil, fmt.Errorf("the private key is a %T; use RSA or ECDSA", key)
}

// keyID names a key by its public half, as servers do, so that they find it quickly
// among several.
// Source: k8s.io/kubernetes/pkg/serviceaccount, keyIDFromPublicKey.
func keyID(public crypto.PublicKey) (string, error) {
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		return "", fmt.Errorf("naming the key: %w", err)
	}
	sum := sha256.Sum256(der)
	return base64.RawURLEncoding.EncodeToString(sum[:]), nil
}

// token returns a token of an account, for the Secret that will hold it.
func (s *signer) token(account *corev1.ServiceAccount, secret string) ([]byte, error) {
	payload, err := json.Marshal(claims{ //nolint:gosec // the name of a Secret is none
		Issuer:     issuer,
		Subject:    "system:serviceaccount:" + account.Namespace + ":" + account.Name,
		Namespace:  account.Namespace,
		Secret:     secret,
		Account:    account.Name,
		AccountUID: string(account.UID),
	})
	if err != nil {
		return nil, fmt.Errorf("encoding the claims: %w", err)
	}
	signed, err := s.jose.Sign(payload)
	if err != nil {
		return nil, fmt.Errorf("signing: %w", err)
	}
	text, err := signed.CompactSerialize()
	return []byte(text), err
}
