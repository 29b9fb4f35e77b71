// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package trustbundle

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/setpoint-io/setpoint/internal/managertest"
	"github.com/setpoint-io/setpoint/manager"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/runs"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// start runs the controller with certificates, and returns its metrics.
func start(t *testing.T, api *fakeapi.Server, certificates string) (p *managertest.Process, metrics prometheus.Collector) {
	t.Helper()
	p = managertest.Run(t, api.Config(), func(m *manager.Manager) (manager.Runnable, error) {
		made, err := New(m, Options{RootCA: []byte(certificates)})
		if err == nil {
			metrics = made.(prometheus.Collector)
		}
		return made, err
	})
	pass(time.Second)
	return p, metrics
}

// add adds a bundle of a signer.
func add(t *testing.T, bundles *fakeapi.Resource, name, signer, content string) {
	t.Helper()
	if err := bundles.Add(&unstructured.Unstructured{Object: map[string]any{
		"apiVersion": bundles.GroupVersion().String(), "kind": "ClusterTrustBundle",
		"metadata": map[string]any{"name": name}, "spec": map[string]any{"signerName": signer, "trustBundle": content},
	}}); err != nil {
		t.Fatal(err)
	}
}

func content(t *testing.T, bundles *fakeapi.Resource, name string) string {
	t.Helper()
	o, err := fakeapi.Read[*unstructured.Unstructured](bundles, object.Key{Name: name})
	if err != nil || o == nil {
		t.Fatalf("bundle %s: %v", name, err)
	}
	return field(o, "trustBundle")
}

// The name is that of kube-controller-manager, so that both write the same object.
func TestTheNameIsThatOfKubeControllerManager(t *testing.T) {
	// Source of the form: k8s.io/kubernetes/pkg/controller/certificates/clustertrustbundlepublisher.
	// The hash is the first 12 bytes of "printf certificates | sha256sum".
	if got, want := nameOf([]byte("certificates")), "kubernetes.io:kube-apiserver-serving:f78c06aa55a0e2d18b565388"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestTheCertificatesAreInOneBundleInEachVersionOfTheKind(t *testing.T) {
	for _, version := range versions() {
		synctest.Test(t, func(t *testing.T) {
			api := fakeapi.New()
			bundles := api.Serve(kind(version))
			add(t, bundles, "kubernetes.io:kube-apiserver-serving:old", Signer, "old")
			add(t, bundles, "example.com:mine:a", "example.com/mine", "theirs")
			p, _ := start(t, api, "certificates")
			name := nameOf([]byte("certificates"))
			if got := bundles.Keys(); !slices.Equal(got, []string{"example.com:mine:a", name}) {
				t.Fatalf("%s: there are %q", version, got)
			}
			if got := content(t, bundles, name); got != "certificates" {
				t.Errorf("%s: its content is %q", version, got)
			}
			pass(time.Hour)
			if n := len(p.Writes()); n != 2 {
				t.Errorf("%s: %d writes, want 2", version, n)
			}
			// Another client changes it, and deletes it.
			bundles.Remove(object.Key{Name: name})
			add(t, bundles, name, Signer, "changed")
			pass(2 * period)
			if got := content(t, bundles, name); got != "certificates" {
				t.Errorf("%s: its content is %q after a change", version, got)
			}
			bundles.Remove(object.Key{Name: name})
			pass(2 * period)
			if got := content(t, bundles, name); got != "certificates" {
				t.Errorf("%s: its content is %q after it was deleted", version, got)
			}
		})
	}
}

func TestAnOldBundleStaysUntilTheNewOneIsThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := fakeapi.New()
		bundles := api.Serve(kind("v1"))
		add(t, bundles, "old", Signer, "old")
		bundles.RefuseNext(2, "create", fakeapi.Forbidden("clustertrustbundles"))
		_, metrics := start(t, api, "certificates")
		pass(time.Hour) // a right that is missing is asked for with long pauses
		if got := bundles.Keys(); len(got) != 1 || got[0] == "old" {
			t.Errorf("there are %q", got)
		}
		calls := bundles.Requests()
		created := slices.IndexFunc(calls, func(q fakeapi.Request) bool { return q.Verb == "delete" })
		if created < 0 || slices.ContainsFunc(calls[created:], func(q fakeapi.Request) bool { return q.Verb == "create" }) {
			t.Error("the old one was deleted before the new one was created")
		}
		registry := prometheus.NewRegistry()
		registry.MustRegister(metrics)
		families, err := registry.Gather()
		if err != nil || len(families) != 2 {
			t.Fatalf("%v, %v", families, err)
		}
		got := map[string]bool{}
		for _, f := range families {
			for _, m := range f.GetMetric() {
				got[fmt.Sprint(f.GetName(), " ", m.GetLabel()[0].GetName(), "=", m.GetLabel()[0].GetValue())] = true
			}
		}
		for _, want := range []string{
			"clustertrustbundle_publisher_sync_total code=200", "clustertrustbundle_publisher_sync_total code=403",
			"clustertrustbundle_publisher_sync_duration_seconds code=200", "clustertrustbundle_publisher_sync_duration_seconds code=403",
		} {
			if !got[want] {
				t.Errorf("no series %s among %v", want, got)
			}
		}
	})
}

func TestAServerWithoutTheKindIsNoFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := fakeapi.New()
		p, _ := start(t, api, "certificates")
		pass(time.Hour)
		if lines := p.Warnings(); len(lines) > 0 {
			t.Errorf("the log says %q", lines)
		}
		present := p.Runs().Present(runs.Query{})
		if len(present) != 1 || len(present[0].Reasons) != 1 || present[0].Reasons[0].Code != codeNotServed {
			t.Errorf("%+v", present)
		}
		bundles := api.Serve(kind("v1")) // after an upgrade
		pass(2 * period)
		if len(bundles.Keys()) != 1 {
			t.Error("nothing is published when the server serves the kind")
		}
	})
}

func TestAnswersThatAreLostLeaveOneBundle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := fakeapi.New()
		bundles := api.Serve(kind("v1"))
		bundles.LoseNext(2, "create")
		bundles.RefuseNext(1, "list", fakeapi.Unavailable(0))
		start(t, api, "certificates")
		pass(time.Hour)
		if got := bundles.Keys(); len(got) != 1 {
			t.Errorf("there are %q", got)
		}
	})
}

func TestAProcessThatIsKilledAfterItsWritesMakesEachOfThemOnce(t *testing.T) {
	managertest.KilledAfterEachWrite(t, func(t *testing.T) managertest.Scene {
		api := fakeapi.New()
		bundles := api.Serve(kind("v1"))
		add(t, bundles, "old", Signer, "old")
		add(t, bundles, "older", Signer, "older")
		return managertest.Scene{
			Config: api.Config(), Make: managertest.Making(New, Options{RootCA: []byte("certificates")}), Await: func() { pass(2 * period) },
			Check: func(t *testing.T) {
				if got, want := bundles.Keys(), nameOf([]byte("certificates")); len(got) != 1 || got[0] != want {
					t.Errorf("there are %q, want %s", got, want)
				}
			},
		}
	})
}
