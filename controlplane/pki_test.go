// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"os"
	"testing"
	"time"
)

func readCertificate(t *testing.T, file string) *x509.Certificate {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(data)
	if block == nil {
		t.Fatalf("%s holds no PEM block", file)
	}
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestExpiredLeafCertificatesAreRenewedUnderTheSameAuthority(t *testing.T) {
	dir := t.TempDir()
	first, err := openPKI(ownDir(t, dir), []string{"localhost", "127.0.0.1"}, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	later := time.Now().Add(leafValidity + time.Hour)
	second, err := openPKI(ownDir(t, dir), []string{"localhost", "127.0.0.1"}, func() time.Time { return later })
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first.cluster.certPEM, second.cluster.certPEM) {
		t.Error("the authority has changed")
	}
	roots := x509.NewCertPool()
	roots.AddCert(first.cluster.cert)
	for _, name := range []string{"localhost", "127.0.0.1"} {
		_, err := readCertificate(t, second.certFile("apiserver")).Verify(x509.VerifyOptions{
			DNSName: name, Roots: roots, CurrentTime: later, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		})
		if err != nil {
			t.Errorf("for %s: %v", name, err)
		}
	}
}

func TestLeafCertificatesEndWithTheirAuthority(t *testing.T) {
	dir := t.TempDir()
	if _, err := openPKI(ownDir(t, dir), nil, time.Now); err != nil {
		t.Fatal(err)
	}
	p, err := openPKI(ownDir(t, dir), nil, func() time.Time { return time.Now().Add(authorityValidity - time.Hour) })
	if err != nil {
		t.Fatal(err)
	}
	if leaf := readCertificate(t, p.certFile("apiserver")); leaf.NotAfter.After(p.cluster.cert.NotAfter) {
		t.Errorf("a certificate ends at %v, after its authority at %v", leaf.NotAfter, p.cluster.cert.NotAfter)
	}
}

func TestServiceAccountKeyIsKept(t *testing.T) {
	dir := t.TempDir()
	var keys [2][]byte
	for i := range keys {
		p, err := openPKI(ownDir(t, dir), nil, time.Now)
		if err != nil {
			t.Fatal(err)
		}
		if keys[i], err = os.ReadFile(p.keyFile("sa")); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(keys[0], keys[1]) {
		t.Error("the second start made a new key: earlier tokens would be refused")
	}
}
