// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package csrcleaner

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/manager"
)

// certificateUntil returns a certificate in PEM.
func certificateUntil(t *testing.T, until time.Time) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: until.Add(-time.Hour), NotAfter: until}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func condition(kind certificatesv1.RequestConditionType, at time.Time) certificatesv1.CertificateSigningRequestCondition {
	c := certificatesv1.CertificateSigningRequestCondition{Type: kind, Status: corev1.ConditionTrue}
	if !at.IsZero() {
		c.LastUpdateTime = metav1.NewTime(at)
	}
	return c
}

func TestARequestIsKeptForItsTimeAndNoLonger(t *testing.T) {
	const hour, day = time.Hour, 24 * time.Hour
	// Certificates say seconds.
	made := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	long, soon := certificateUntil(t, made.Add(365*day)), certificateUntil(t, made.Add(20*time.Minute))
	type conditions = []certificatesv1.CertificateSigningRequestCondition
	approved := condition(certificatesv1.CertificateApproved, made.Add(time.Minute))
	for name, c := range map[string]struct {
		conditions  conditions
		certificate []byte
		want        time.Duration // after it was made; 0: for ever
	}{
		"undecided":                             {nil, nil, day},
		"denied":                                {conditions{condition(certificatesv1.CertificateDenied, made.Add(time.Minute))}, nil, hour + time.Minute},
		"approved and answered":                 {conditions{approved}, long, hour + time.Minute},
		"approved and not answered":             {conditions{approved}, nil, day + time.Minute},
		"failed":                                {conditions{approved, condition(certificatesv1.CertificateFailed, made.Add(2*time.Minute))}, nil, hour + 2*time.Minute},
		"expired":                               {conditions{approved}, soon, 20 * time.Minute},
		"answered with what is no certificate":  {conditions{approved}, []byte("-----BEGIN"), hour + time.Minute},
		"approved at a time that nobody knows":  {conditions{condition(certificatesv1.CertificateApproved, time.Time{})}, nil, 0},
		"the same, but its certificate expires": {conditions{condition(certificatesv1.CertificateApproved, time.Time{})}, soon, 20 * time.Minute},
		"with a condition of somebody's own":    {conditions{condition("Strange", made)}, nil, 0},
		"denied after it was approved":          {conditions{approved, condition(certificatesv1.CertificateDenied, made.Add(hour))}, nil, 2 * hour},
	} {
		t.Run(name, func(t *testing.T) {
			csr := &certificatesv1.CertificateSigningRequest{
				ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(made)},
				Status:     certificatesv1.CertificateSigningRequestStatus{Conditions: c.conditions, Certificate: c.certificate},
			}
			got := expiry(csr)
			if c.want == 0 && !got.IsZero() || c.want != 0 && !got.Equal(made.Add(c.want)) {
				t.Errorf("it is kept until %s, want %s after %s", got, c.want, made)
			}
		})
	}
}

func TestNegativeWorkersAreRefused(t *testing.T) {
	mgr, err := manager.New(&rest.Config{Host: "https://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := New(mgr, Options{Workers: -1}); err == nil || !strings.Contains(err.Error(), "-1 workers") {
		t.Errorf("New with -1 workers = %v, want an error that says so", err)
	}
}
