// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package csrcleaner

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/internal/certrequesttest"
	"github.com/setpoint-io/setpoint/internal/controlplanetest"
	"github.com/setpoint-io/setpoint/manager"
	"github.com/setpoint-io/setpoint/object"
)

var shared = controlplanetest.Shared{}

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

// denied makes a request that was denied at a time.
func denied(t *testing.T, name string, at time.Time) object.Key {
	t.Helper()
	writer := client.For[*certificatesv1.CertificateSigningRequest](shared.Get(t).Client)
	csr, _ := certrequesttest.Object(t, fmt.Sprintf("%s-%08x", name, rand.Uint32()), "example.com/mine", certrequesttest.User("jane"), certificatesv1.UsageClientAuth)
	csr, err := writer.Create(t.Context(), csr)
	if err != nil {
		t.Fatal(err)
	}
	csr.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{condition(certificatesv1.CertificateDenied, at)}
	if _, err := writer.Sub("approval").Update(t.Context(), object.KeyOf(csr), csr); err != nil {
		t.Fatal(err)
	}
	return object.KeyOf(csr)
}

func TestADeniedRequestGoesAfterAnHourWithTheRightsThatAreDeclared(t *testing.T) {
	cluster := shared.Get(t)
	fresh, old := denied(t, "fresh", time.Now()), denied(t, "old", time.Now().Add(-61*time.Minute))
	mgr, err := manager.New(cluster.Restricted(t, Rights()), manager.Log(slog.New(slog.NewTextHandler(t.Output(), nil))))
	if err != nil {
		t.Fatal(err)
	}
	c, err := New(mgr, Defaults())
	if err != nil {
		t.Fatal(err)
	}
	if err := mgr.Add(c); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	requests := client.For[*certificatesv1.CertificateSigningRequest](cluster.Client)
	for end := time.Now().Add(controlplanetest.Patience); ; time.Sleep(10 * time.Millisecond) {
		_, err := requests.Get(t.Context(), old)
		if apierrors.IsNotFound(err) {
			break
		}
		if err != nil || time.Now().After(end) {
			t.Fatalf("it is still there (%v)", err)
		}
	}
	if _, err := requests.Get(t.Context(), fresh); err != nil {
		t.Errorf("one that was denied just now: %v", err)
	}
}
