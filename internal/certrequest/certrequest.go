// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package certrequest

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"slices"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
)

// pemType is what RFC 7468 calls a request.
const pemType = "CERTIFICATE REQUEST"

// Parse reads spec.request: one PEM block with a PKCS #10 request, whose signature is
// checked.
func Parse(request []byte) (*x509.CertificateRequest, error) {
	block, _ := pem.Decode(request)
	if block == nil || block.Type != pemType {
		return nil, errors.New("the request is no PEM block of type " + pemType)
	}
	parsed, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return nil, err
	}
	return parsed, parsed.CheckSignature()
}

// Decided returns what was decided on a request. It may be both; denied counts then.
func Decided(csr *certificatesv1.CertificateSigningRequest) (approved, denied bool) {
	for _, c := range csr.Status.Conditions {
		approved = approved || c.Type == certificatesv1.CertificateApproved
		denied = denied || c.Type == certificatesv1.CertificateDenied
	}
	return approved, denied
}

// Failed reports whether a signer has given a request up.
func Failed(csr *certificatesv1.CertificateSigningRequest) bool {
	return slices.ContainsFunc(csr.Status.Conditions, func(c certificatesv1.CertificateSigningRequestCondition) bool {
		return c.Type == certificatesv1.CertificateFailed && (c.Status == "" || c.Status == corev1.ConditionTrue)
	})
}
