// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package certrequest_test

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"net"
	"net/url"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/internal/certrequest"
	"github.com/setpoint-io/setpoint/internal/certrequesttest"
)

func TestParseReadsWhatWasAskedForAndChecksItsSignature(t *testing.T) {
	request, _ := certrequesttest.Encode(t, certrequesttest.Node("a"))
	parsed, err := certrequest.Parse(request)
	if err != nil || parsed.Subject.CommonName != "system:node:a" {
		t.Fatalf("Parse = %v, %v", parsed, err)
	}
	block, _ := pem.Decode(request)
	forged := bytes.Clone(block.Bytes)
	forged[bytes.Index(forged, []byte("system:node:a"))+12] = 'b' // another name, the old signature
	for name, text := range map[string][]byte{
		"nothing":               nil,
		"no PEM":                []byte("hello"),
		"a certificate":         pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: block.Bytes}),
		"garbage":               pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: []byte("garbage")}),
		"signed by another key": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: forged}),
	} {
		if _, err := certrequest.Parse(text); err == nil {
			t.Errorf("%s is taken for a request", name)
		}
	}
}

func FuzzParseNeverPanics(f *testing.F) {
	request, _ := certrequesttest.Encode(f, certrequesttest.Node("a"))
	f.Add(request)
	f.Fuzz(func(t *testing.T, request []byte) {
		if parsed, err := certrequest.Parse(request); err == nil {
			_ = certrequest.CheckKubeletClient(parsed, certrequesttest.ClientUsages)
			_ = certrequest.CheckKubeletServing(parsed, certrequesttest.ServingUsages)
		}
	})
}

// with changes a node's request.
func with(change func(*x509.CertificateRequest)) *x509.CertificateRequest {
	r := certrequesttest.Node("a")
	change(&r)
	return &r
}

func usages(all ...certificatesv1.KeyUsage) []certificatesv1.KeyUsage { return all }

func TestAKubeletsRequestHasTheFormThatUpstreamAsksFor(t *testing.T) {
	const (
		sign, encipher = certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment
		client, server = certificatesv1.UsageClientAuth, certificatesv1.UsageServerAuth
	)
	address, uri := net.IPv4(10, 0, 0, 1), &url.URL{Scheme: "spiffe", Host: "a"}
	plain := with(func(*x509.CertificateRequest) {})
	named := with(func(r *x509.CertificateRequest) { r.DNSNames = []string{"a"} })
	for name, c := range map[string]struct {
		request                 *x509.CertificateRequest
		usages                  []certificatesv1.KeyUsage
		wantClient, wantServing string // what is wrong; none: it is good
	}{
		"a client's": {plain, usages(sign, client), "", "DNS or IP subjectAltName is required"},
		"a client's with RSA": {
			plain, usages(encipher, client, sign), "", "DNS or IP subjectAltName is required",
		},
		"usages twice": {plain, usages(sign, client, sign), "", "DNS or IP subjectAltName is required"},
		"a server's with a DNS name": {
			named, usages(sign, server), "DNS subjectAltNames are not allowed", "",
		},
		"a server's with an address, and RSA": {
			with(func(r *x509.CertificateRequest) { r.IPAddresses = []net.IP{address} }), usages(server, sign, encipher),
			"IP subjectAltNames are not allowed", "",
		},
		"an e-mail address": {
			with(func(r *x509.CertificateRequest) {
				r.EmailAddresses = []string{"a@b"}
				r.IPAddresses = []net.IP{address}
			}), usages(sign, server),
			"Email subjectAltNames are not allowed", "Email subjectAltNames are not allowed",
		},
		"a URI": {
			with(func(r *x509.CertificateRequest) { r.URIs = []*url.URL{uri}; r.DNSNames = []string{"a"} }), usages(sign, server),
			"DNS subjectAltNames are not allowed", "URI subjectAltNames are not allowed",
		},
		"a URI alone": {
			with(func(r *x509.CertificateRequest) { r.URIs = []*url.URL{uri} }), usages(sign, client),
			"URI subjectAltNames are not allowed", "DNS or IP subjectAltName is required",
		},
		"no organization": {
			with(func(r *x509.CertificateRequest) { r.Subject.Organization = nil }), usages(sign, client),
			"subject organization is not system:nodes", "subject organization is not system:nodes",
		},
		"one organization more": {
			with(func(r *x509.CertificateRequest) { r.Subject.Organization = []string{"system:nodes", "system:masters"} }), usages(sign, client),
			"subject organization is not system:nodes", "subject organization is not system:nodes",
		},
		"no node's name": {
			with(func(r *x509.CertificateRequest) { r.Subject.CommonName = "a"; r.DNSNames = nil }), usages(sign, client),
			"subject common name does not begin with system:node:", "DNS or IP subjectAltName is required",
		},
		"no node's name, a server's": {
			with(func(r *x509.CertificateRequest) { r.Subject.CommonName = "a"; r.DNSNames = []string{"a"} }), usages(sign, server),
			"DNS subjectAltNames are not allowed", "subject common name does not begin with system:node:",
		},
		"a usage too few": {
			plain, usages(client),
			"usages did not match [client auth digital signature key encipherment]", "DNS or IP subjectAltName is required",
		},
		"a usage too many": {
			named, usages(sign, server, client),
			"DNS subjectAltNames are not allowed", "usages did not match [digital signature key encipherment server auth]",
		},
		"another's usage": {
			plain, usages(sign, server),
			"usages did not match [client auth digital signature key encipherment]", "DNS or IP subjectAltName is required",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := text(certrequest.CheckKubeletClient(c.request, c.usages)); got != c.wantClient {
				t.Errorf("for a client %q, want %q", got, c.wantClient)
			}
			if got := text(certrequest.CheckKubeletServing(c.request, c.usages)); got != c.wantServing {
				t.Errorf("for a server %q, want %q", got, c.wantServing)
			}
		})
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestARequestIsDecidedByItsConditions(t *testing.T) {
	csr := &certificatesv1.CertificateSigningRequest{}
	add := func(kind certificatesv1.RequestConditionType, status corev1.ConditionStatus) {
		csr.Status.Conditions = append(csr.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{Type: kind, Status: status})
	}
	want := func(approved, denied, failed bool) {
		t.Helper()
		if a, d := certrequest.Decided(csr); a != approved || d != denied || certrequest.Failed(csr) != failed {
			t.Errorf("approved %t, denied %t, failed %t; want %t, %t, %t", a, d, certrequest.Failed(csr), approved, denied, failed)
		}
	}
	want(false, false, false)
	add(certificatesv1.CertificateApproved, corev1.ConditionTrue)
	want(true, false, false)
	add(certificatesv1.CertificateFailed, corev1.ConditionFalse)
	want(true, false, false)
	add(certificatesv1.CertificateFailed, "") // as older clients wrote it
	want(true, false, true)
	add(certificatesv1.CertificateDenied, corev1.ConditionTrue)
	want(true, true, true)
}
