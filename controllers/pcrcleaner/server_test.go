// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package pcrcleaner

import (
	"os"
	"sync/atomic"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/internal/certrequesttest"
	"github.com/setpoint-io/setpoint/internal/controlplanetest"
	"github.com/setpoint-io/setpoint/internal/managertest"
	"github.com/setpoint-io/setpoint/manager"
	"github.com/setpoint-io/setpoint/object"
)

var shared = controlplanetest.Shared{}

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

// TestServerRequestsGoWhenTheyAreOld has two processes with the controller's own rights. The first
// one finds a new request. The clock of the second one is past the request's age.
func TestServerRequestsGoWhenTheyAreOld(t *testing.T) {
	cluster := shared.Get(t)
	requests := client.For[*certificatesv1.PodCertificateRequest](cluster.Client)
	namespace := cluster.Namespace(t)
	request, err := requests.Create(t.Context(), certrequesttest.Pod(t, namespace, "web"))
	if err != nil {
		t.Fatal(err)
	}
	config := cluster.Restricted(t, Rights())
	var looked atomic.Int64
	run := func(later time.Duration) *managertest.Process {
		return managertest.Run(t, config, func(m *manager.Manager) (manager.Runnable, error) {
			return newWith(m, func() time.Time {
				looked.Add(1)
				return time.Now().Add(later)
			})
		})
	}
	exists := func() bool {
		_, err := requests.Get(t.Context(), object.KeyOf(request))
		if err != nil && !apierrors.IsNotFound(err) {
			t.Fatal(err)
		}
		return err == nil
	}
	p := run(oldest - time.Minute)
	controlplanetest.Eventually(t, "a process has looked at the request", func() bool { return looked.Load() > 0 })
	p.Stop()
	if !exists() {
		t.Error("a request that is not old is gone")
	}
	p = run(oldest)
	controlplanetest.Eventually(t, "the old request is gone", func() bool { return !exists() })
	if lines := p.Warnings(); len(lines) > 0 {
		t.Errorf("the log says %q", lines)
	}
}
