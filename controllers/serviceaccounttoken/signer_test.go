// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package serviceaccounttoken

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"strings"
	"testing"

	"github.com/go-jose/go-jose/v4"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// inPEM writes a key as PKCS #8.
func inPEM(t *testing.T, key any) []byte {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

// Each is verified by what reads tokens elsewhere, and by the public key alone.
func TestTokensAreSignedWithRSAAndWithECDSA(t *testing.T) {
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	keys := map[jose.SignatureAlgorithm]crypto.Signer{jose.RS256: rsaKey}
	for algorithm, curve := range map[jose.SignatureAlgorithm]elliptic.Curve{jose.ES256: elliptic.P256(), jose.ES384: elliptic.P384(), jose.ES512: elliptic.P521()} {
		if keys[algorithm], err = ecdsa.GenerateKey(curve, rand.Reader); err != nil {
			t.Fatal(err)
		}
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "builder", UID: "1234"}}
	const want = `{"iss":"kubernetes/serviceaccount","sub":"system:serviceaccount:team-a:builder",` +
		`"kubernetes.io/serviceaccount/namespace":"team-a","kubernetes.io/serviceaccount/secret.name":"builder-token",` +
		`"kubernetes.io/serviceaccount/service-account.name":"builder","kubernetes.io/serviceaccount/service-account.uid":"1234"}`
	for algorithm, key := range keys {
		t.Run(string(algorithm), func(t *testing.T) {
			s, err := newSigner(inPEM(t, key))
			if err != nil {
				t.Fatal(err)
			}
			token, err := s.token(account, "builder-token")
			if err != nil {
				t.Fatal(err)
			}
			signed, err := jose.ParseSignedCompact(string(token), []jose.SignatureAlgorithm{algorithm})
			if err != nil {
				t.Fatal(err)
			}
			payload, err := signed.Verify(key.Public())
			if err != nil || string(payload) != want {
				t.Errorf("the token says %s (%v), want %s", payload, err, want)
			}
			der, err := x509.MarshalPKIXPublicKey(key.Public())
			if err != nil {
				t.Fatal(err)
			}
			sum := sha256.Sum256(der)
			if id := base64.RawURLEncoding.EncodeToString(sum[:]); signed.Signatures[0].Header.KeyID != id {
				t.Errorf("the key is called %q, want the hash of its public half, %q", signed.Signatures[0].Header.KeyID, id)
			}
		})
	}
}

func TestKeysOfOtherKindsAreRefusedWithoutBeingShown(t *testing.T) {
	_, edwards, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	small, err := ecdsa.GenerateKey(elliptic.P224(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		key  []byte
		says string
	}{
		"another kind":  {inPEM(t, edwards), "ed25519"},
		"another curve": {inPEM(t, small), "P-224"},
		"no key":        {[]byte("open-sesame"), "neither an RSA nor an ECDSA key"},
		"a broken key":  {pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("open-sesame")}), "neither an RSA nor an ECDSA key"},
	} {
		_, err := newSigner(c.key)
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want an error that says %q", name, err, c.says)
			continue
		}
		if text := strings.TrimSpace(string(c.key)); strings.Contains(err.Error(), text) || strings.Contains(err.Error(), "open-sesame") {
			t.Errorf("%s: the error shows the key: %v", name, err)
		}
	}
}
