// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package csrcleaner

import (
	"crypto/x509"
	"encoding/pem"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// How long requests are kept.
// Source: k8s.io/kubernetes/pkg/controller/certificates/cleaner/cleaner.go.
const (
	keepAnswered   = time.Hour      // approved, with a certificate
	keepRefused    = time.Hour      // denied or failed
	keepUnanswered = 24 * time.Hour // undecided, or approved and without a certificate
)

// expiry returns when a request is no longer needed; it may be deleted after that. The
// zero time is never.
func expiry(csr *certificatesv1.CertificateSigningRequest) time.Time {
	var soonest time.Time
	add := func(at time.Time) {
		if !at.IsZero() && (soonest.IsZero() || at.Before(soonest)) {
			soonest = at
		}
	}
	answered := len(csr.Status.Certificate) > 0
	for _, c := range csr.Status.Conditions {
		switch {
		case c.Type == certificatesv1.CertificateApproved && answered:
			add(after(c.LastUpdateTime, keepAnswered))
			add(notAfter(csr.Status.Certificate))
		case c.Type == certificatesv1.CertificateApproved:
			add(after(c.LastUpdateTime, keepUnanswered))
		case c.Type == certificatesv1.CertificateDenied, c.Type == certificatesv1.CertificateFailed:
			add(after(c.LastUpdateTime, keepRefused))
		}
	}
	if len(csr.Status.Conditions) == 0 {
		add(after(csr.CreationTimestamp, keepUnanswered))
	}
	return soonest
}

// after adds to a time that may not be known.
func after(t metav1.Time, d time.Duration) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return t.Add(d)
}

// notAfter is when a certificate in PEM expires; the zero time if it cannot be read.
func notAfter(certificate []byte) time.Time {
	block, _ := pem.Decode(certificate)
	if block == nil {
		return time.Time{}
	}
	parsed, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return time.Time{}
	}
	return parsed.NotAfter
}
