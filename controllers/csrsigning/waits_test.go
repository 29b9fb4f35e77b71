// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package csrsigning

import (
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
)

// Servers store no request that is approved and denied, and none is signed twice: they
// refuse it. The signer does not count on either.
func TestARequestWaitsForItsSignerWhileItIsApprovedAndHasNoAnswer(t *testing.T) {
	const approved, denied, failed = certificatesv1.CertificateApproved, certificatesv1.CertificateDenied, certificatesv1.CertificateFailed
	type kinds = []certificatesv1.RequestConditionType
	for name, c := range map[string]struct {
		conditions  kinds
		certificate string
		want        bool
	}{
		"undecided":             {nil, "", false},
		"approved":              {kinds{approved}, "", true},
		"denied":                {kinds{denied}, "", false},
		"approved, then denied": {kinds{approved, denied}, "", false},
		"denied, then approved": {kinds{denied, approved}, "", false},
		"failed":                {kinds{failed}, "", false},
		"approved, then failed": {kinds{approved, failed}, "", false},
		"signed":                {kinds{approved}, "-----BEGIN", false},
		"with a strange one":    {kinds{"Strange", approved}, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			csr := &certificatesv1.CertificateSigningRequest{}
			csr.Status.Certificate = []byte(c.certificate)
			for _, kind := range c.conditions {
				csr.Status.Conditions = append(csr.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{Type: kind, Status: corev1.ConditionTrue})
			}
			if got := waits(csr); got != c.want {
				t.Errorf("it waits: %t, want %t", got, c.want)
			}
		})
	}
}
