// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package certrequesttest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ClientUsages and ServingUsages are the usages that a kubelet requests.
var (
	ClientUsages  = []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth}
	ServingUsages = []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageServerAuth}
)

// Node returns the contents of a kubelet's request.
func Node(name string) x509.CertificateRequest {
	return x509.CertificateRequest{Subject: pkix.Name{CommonName: "system:node:" + name, Organization: []string{"system:nodes"}}}
}

// User returns the contents of a user's request.
func User(name string, groups ...string) x509.CertificateRequest {
	return x509.CertificateRequest{Subject: pkix.Name{CommonName: name, Organization: groups}}
}

// Encode signs a request with a new key, which it returns with it.
func Encode(t testing.TB, r x509.CertificateRequest) ([]byte, crypto.Signer) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &r, key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}), key
}

// Object returns a request as the API has it.
func Object(t testing.TB, name, signer string, r x509.CertificateRequest, usages ...certificatesv1.KeyUsage) (*certificatesv1.CertificateSigningRequest, crypto.Signer) {
	t.Helper()
	request, key := Encode(t, r)
	return &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       certificatesv1.CertificateSigningRequestSpec{Request: request, SignerName: signer, Usages: usages},
	}, key
}

// Pod returns a request of a kubelet for a Pod, which no signer answers. Its namespace is the only
// thing in it that has to exist.
func Pod(t testing.TB, namespace, pod string) *certificatesv1.PodCertificateRequest {
	t.Helper()
	text, _ := Encode(t, x509.CertificateRequest{})
	request, _ := pem.Decode(text)
	return &certificatesv1.PodCertificateRequest{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "of-" + pod},
		Spec: certificatesv1.PodCertificateRequestSpec{
			SignerName: "example.com/none", StubPKCS10Request: request.Bytes,
			PodName: pod, PodUID: "a9c5d7c0-0000-4000-8000-000000000001",
			ServiceAccountName: "default", ServiceAccountUID: "a9c5d7c0-0000-4000-8000-000000000002",
			NodeName: "node-0", NodeUID: "a9c5d7c0-0000-4000-8000-000000000003",
		},
	}
}
