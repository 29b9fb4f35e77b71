// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package rootcapublisher

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/internal/managertest"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// A real server refuses a ConfigMap in a namespace that terminates, which hides whether
// one was asked for. This one refuses nothing.
func TestForANamespaceThatIsNotActiveNothingIsAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := fakeapi.New()
		namespaces := server.Serve(object.Resource{Version: "v1", Plural: "namespaces", Kind: "Namespace"})
		configMaps := server.Serve(object.Resource{Version: "v1", Plural: "configmaps", Kind: "ConfigMap", Namespaced: true})
		deleted := new(metav1.Now())
		for name, ns := range map[string]corev1.Namespace{
			"active":             {Status: corev1.NamespaceStatus{Phase: corev1.NamespaceActive}},
			"terminating":        {Status: corev1.NamespaceStatus{Phase: corev1.NamespaceTerminating}, ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: deleted}},
			"phase-terminating":  {Status: corev1.NamespaceStatus{Phase: corev1.NamespaceTerminating}},
			"deleted-but-active": {Status: corev1.NamespaceStatus{Phase: corev1.NamespaceActive}, ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: deleted}},
			"wrong-and-going":    {Status: corev1.NamespaceStatus{Phase: corev1.NamespaceTerminating}, ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: deleted}},
		} {
			ns.Name = name
			if err := namespaces.Add(&ns); err != nil {
				t.Fatal(err)
			}
		}
		if err := configMaps.Add(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "wrong-and-going", Name: configMap}}); err != nil {
			t.Fatal(err)
		}
		managertest.Run(t, server.Config(), managertest.Making(New, Options{Workers: 1, RootCA: []byte("x")}))
		synctest.Wait()
		if got, want := configMaps.Calls(), []string{"create /api/v1/namespaces/active/configmaps"}; !slices.Equal(got, want) {
			t.Errorf("the server was asked to %q, want %q", got, want)
		}
	})
}

func TestRunsAreCountedByTheCodeOfTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := fakeapi.New()
		namespaces := server.Serve(object.Resource{Version: "v1", Plural: "namespaces", Kind: "Namespace"})
		configMaps := server.Serve(object.Resource{Version: "v1", Plural: "configmaps", Kind: "ConfigMap", Namespaced: true})
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Status: corev1.NamespaceStatus{Phase: corev1.NamespaceActive}}
		if err := namespaces.Add(ns); err != nil {
			t.Fatal(err)
		}
		configMaps.RefuseNext(2, "create", fakeapi.Forbidden("configmaps"))
		var metrics prometheus.Collector
		managertest.Run(t, server.Config(), managertest.MakingMetrics(New, Options{Workers: 1, RootCA: []byte("x")}, &metrics))
		time.Sleep(time.Hour) // a run that a missing right has stopped is repeated after a long pause
		synctest.Wait()
		got := managertest.Series(t, metrics)
		for _, name := range []string{"root_ca_cert_publisher_sync_total", "root_ca_cert_publisher_sync_duration_seconds"} {
			if ok, refused := got[name+`{code="200"}`], got[name+`{code="403"}`]; ok != 1 || refused != 2 || len(got) != 4 {
				t.Errorf("%s has %v runs that succeeded and %v that were refused, want 1 and 2; all series: %v", name, ok, refused, got)
			}
		}
	})
}
