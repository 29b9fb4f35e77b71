// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"crypto/tls"
	"os"
	"testing"
	"time"

	"github.com/setpoint-io/setpoint/manager/serving"
)

// readAgain is after which time the files of a certificate have been read again.
const readAgain = 1100 * time.Millisecond

// copyFile writes what is in a file over another one.
func copyFile(t *testing.T, from, to string) {
	t.Helper()
	text, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, text, 0o600) //nolint:gosec // G703: the test chooses both files
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A rotation replaces the certificate first, and the key later.
func TestACertificateWithoutItsKeyLeavesThePairFromBefore(t *testing.T) {
	cert, key := hostPair(t, "a.example.com")
	other, otherKey := hostPair(t, "b.example.com")
	address, _ := served(t, serving.Options{CertFile: cert, KeyFile: key})
	for _, step := range []struct{ from, to, want string }{{other, cert, "a.example.com"}, {otherKey, key, "b.example.com"}} {
		copyFile(t, step.from, step.to)
		time.Sleep(readAgain)
		state, err := dial(t, address, &tls.Config{})
		if err != nil {
			t.Fatalf("a client cannot connect after %s: %v", step.to, err)
		}
		if name := state.PeerCertificates[0].DNSNames[0]; name != step.want {
			t.Errorf("clients get the certificate of %s, want that of %s", name, step.want)
		}
	}
}

func TestTheCertificateOfAHostMayBeReplaced(t *testing.T) {
	cert, key := hostPair(t, "a.example.com")
	address, _ := served(t, serving.Options{TLS: serving.TLS{Names: []serving.NamedCertificate{{CertFile: cert, KeyFile: key}}}})
	before, err := dial(t, address, &tls.Config{ServerName: "a.example.com"})
	if err != nil {
		t.Fatal(err)
	}
	newCert, newKey := hostPair(t, "a.example.com")
	copyFile(t, newCert, cert)
	copyFile(t, newKey, key)
	time.Sleep(readAgain)
	after, err := dial(t, address, &tls.Config{ServerName: "a.example.com"})
	if err != nil {
		t.Fatal(err)
	}
	if before.PeerCertificates[0].Equal(after.PeerCertificates[0]) {
		t.Error("clients still get the certificate that was replaced")
	}
}
