// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package csrsigning

import (
	"crypto/x509"
	"fmt"
	"slices"

	certificatesv1 "k8s.io/api/certificates/v1"
	certificatesv1beta1 "k8s.io/api/certificates/v1beta1"

	"github.com/setpoint-io/setpoint/internal/certrequest"
)

// check returns what keeps a request from being one that a signer signs, or nil. What
// it says ends up in the condition Failed.
type check func(*x509.CertificateRequest, []certificatesv1.KeyUsage) error

var checks = map[string]check{
	certificatesv1.KubeAPIServerClientSignerName:        checkClient,
	certificatesv1.KubeAPIServerClientKubeletSignerName: certrequest.CheckKubeletClient,
	certificatesv1.KubeletServingSignerName:             certrequest.CheckKubeletServing,
	certificatesv1beta1.LegacyUnknownSignerName:         func(*x509.CertificateRequest, []certificatesv1.KeyUsage) error { return nil },
}

// Signers returns the names of the signers that the controller knows, in no order that
// matters. The caller owns the result.
func Signers() []string {
	return []string{
		certificatesv1.KubeAPIServerClientSignerName,
		certificatesv1.KubeAPIServerClientKubeletSignerName,
		certificatesv1.KubeletServingSignerName,
		certificatesv1beta1.LegacyUnknownSignerName,
	}
}

// checkClient restricts the usages, not the names: whom a certificate may name is for
// those to decide who approve it, and for the server's admission.
// The words are upstream's, see certrequest.
// Source: k8s.io/kubernetes/pkg/controller/certificates/signer/signer.go.
func checkClient(_ *x509.CertificateRequest, usages []certificatesv1.KeyUsage) error {
	for _, usage := range usages {
		switch usage {
		case certificatesv1.UsageClientAuth, certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment:
		default:
			return fmt.Errorf("invalid usage for client certificate: %s", usage)
		}
	}
	if !slices.Contains(usages, certificatesv1.UsageClientAuth) {
		return fmt.Errorf("missing required usage for client certificate: %s", certificatesv1.UsageClientAuth)
	}
	return nil
}
