// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"os"

	"github.com/rogpeppe/go-internal/testscript"
)

// certrequest NAME GROUP KEYFILE FILE makes a key and a request for a certificate, as
// openssl would.
func certRequest(ts *testscript.TestScript, _ bool, args []string) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	ts.Check(err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	ts.Check(err)
	request, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject: pkix.Name{CommonName: args[0], Organization: args[1:2]},
	}, key)
	ts.Check(err)
	for file, block := range map[string]*pem.Block{
		args[2]: {Type: "PRIVATE KEY", Bytes: private},
		args[3]: {Type: "CERTIFICATE REQUEST", Bytes: request},
	} {
		ts.Check(os.WriteFile(ts.MkAbs(file), pem.EncodeToMemory(block), 0o600))
	}
}
