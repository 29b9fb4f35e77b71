// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package csrsigning

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// pair is an authority in PEM.
type pair struct{ certificate, key []byte }

func ellipticKey(t testing.TB) crypto.Signer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// newPair makes an authority with a key, valid until a time. change may be nil.
func newPair(t testing.TB, key crypto.Signer, until time.Time, change func(*x509.Certificate)) pair {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test-ca"},
		NotBefore: until.Add(-100 * 365 * 24 * time.Hour), NotAfter: until,
		KeyUsage: x509.KeyUsageCertSign, BasicConstraintsValid: true, IsCA: true,
	}
	if change != nil {
		change(template)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pair{
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}),
	}
}

func TestAnAuthorityIsReadWithAKeyOfAnyUsualKind(t *testing.T) {
	far := time.Now().Add(time.Hour)
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	_, edKey, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	ecKey := ellipticKey(t)
	sec1, err := x509.MarshalECPrivateKey(ecKey.(*ecdsa.PrivateKey))
	if err != nil {
		t.Fatal(err)
	}
	for name, p := range map[string]pair{
		"ECDSA":   newPair(t, ecKey, far, nil),
		"RSA":     newPair(t, rsaKey, far, nil),
		"Ed25519": newPair(t, edKey, far, nil),
		"PKCS #1": {newPair(t, rsaKey, far, nil).certificate, pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(rsaKey)})},
		"SEC 1, behind its parameters, as openssl writes it": {newPair(t, ecKey, far, nil).certificate, slices.Concat(
			pem.EncodeToMemory(&pem.Block{Type: "EC PARAMETERS", Bytes: []byte{6, 8, 42, 134, 72, 206, 61, 3, 1, 7}}),
			pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: sec1}))},
	} {
		if _, err := ParseAuthority(p.certificate, p.key); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestWhatIsNoAuthorityIsRefusedAndTheKeyIsNotInTheError(t *testing.T) {
	far := time.Now().Add(time.Hour)
	good, other := newPair(t, ellipticKey(t), far, nil), newPair(t, ellipticKey(t), far, nil)
	leaf := newPair(t, ellipticKey(t), far, func(c *x509.Certificate) { c.IsCA = false })
	for name, c := range map[string]struct {
		p    pair
		want string
	}{
		"no certificate":             {pair{nil, good.key}, "no certificate"},
		"the key in its place":       {pair{good.key, good.key}, "no certificate"},
		"a certificate that is cut":  {pair{pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("x")}), good.key}, "x509"},
		"two certificates":           {pair{slices.Concat(good.certificate, other.certificate), good.key}, "more than one"},
		"no authority's certificate": {leaf, "not that of a certificate authority"},
		"no key":                     {pair{good.certificate, nil}, "no private key"},
		"a key that is cut":          {pair{good.certificate, good.key[:len(good.key)/2]}, "no private key"},
		"an encrypted key":           {pair{good.certificate, pem.EncodeToMemory(&pem.Block{Type: "ENCRYPTED PRIVATE KEY", Bytes: []byte("x")})}, "encrypted"},
		"another's key":              {pair{good.certificate, other.key}, "not the one of its certificate"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParseAuthority(c.p.certificate, c.p.key)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("the error is %v, want one that says %q", err, c.want)
			}
			for line := range strings.SplitSeq(string(good.key), "\n") {
				if line != "" && strings.Contains(err.Error(), line) {
					t.Errorf("the key is in %q", err)
				}
			}
		})
	}
}

func write(t *testing.T, dir string, p pair) (certificate, key string) {
	t.Helper()
	certificate, key = filepath.Join(dir, "ca.crt"), filepath.Join(dir, "ca.key")
	for file, text := range map[string][]byte{certificate: p.certificate, key: p.key} {
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return certificate, key
}

func TestFilesAreReadEachTimeSoThatARotationCounts(t *testing.T) {
	dir := t.TempDir()
	first := newPair(t, ellipticKey(t), time.Now().Add(time.Hour), nil)
	source := Files(write(t, dir, first))
	before, err := source()
	if err != nil {
		t.Fatal(err)
	}
	second := newPair(t, ellipticKey(t), time.Now().Add(2*time.Hour), nil)
	certificate, key := write(t, dir, pair{second.certificate, first.key}) // half of a rotation
	if _, err := source(); err == nil || !strings.Contains(err.Error(), certificate) || !strings.Contains(err.Error(), key) {
		t.Errorf("the error is %v, want one that names both files", err)
	}
	write(t, dir, second)
	after, err := source()
	if err != nil {
		t.Fatal(err)
	}
	if after.certificate.Equal(before.certificate) {
		t.Error("the old authority counts")
	}
}

func FuzzParseAuthorityNeverPanicsNorTellsTheKey(f *testing.F) {
	p := newPair(f, ellipticKey(f), time.Now().Add(time.Hour), nil)
	f.Add(p.certificate, p.key)
	f.Fuzz(func(t *testing.T, certificate, key []byte) {
		_, err := ParseAuthority(certificate, key)
		if block, _ := pem.Decode(key); err != nil && block != nil && len(block.Bytes) > 16 {
			if strings.Contains(err.Error(), base64.StdEncoding.EncodeToString(block.Bytes)) {
				t.Errorf("the key is in %q", err)
			}
		}
	})
}
