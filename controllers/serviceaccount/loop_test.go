// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package serviceaccount_test

import (
	"slices"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/controllers/serviceaccount"
	"github.com/setpoint-io/setpoint/internal/managertest"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// A real server refuses an account in a namespace that terminates, which hides whether
// one was asked for. This one refuses nothing.
func TestForANamespaceThatIsNotActiveNothingIsAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := fakeapi.New()
		namespaces := server.Serve(object.Resource{Version: "v1", Plural: "namespaces", Kind: "Namespace"})
		accounts := server.Serve(object.Resource{Version: "v1", Plural: "serviceaccounts", Kind: "ServiceAccount", Namespaced: true})
		deleted := new(metav1.Now())
		for name, ns := range map[string]corev1.Namespace{
			"active":             {Status: corev1.NamespaceStatus{Phase: corev1.NamespaceActive}},
			"terminating":        {Status: corev1.NamespaceStatus{Phase: corev1.NamespaceTerminating}, ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: deleted}},
			"phase-terminating":  {Status: corev1.NamespaceStatus{Phase: corev1.NamespaceTerminating}},
			"deleted-but-active": {Status: corev1.NamespaceStatus{Phase: corev1.NamespaceActive}, ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: deleted}},
			"without-phase":      {},
		} {
			ns.Name = name
			if err := namespaces.Add(&ns); err != nil {
				t.Fatal(err)
			}
		}
		managertest.Run(t, server.Config(), managertest.Making(serviceaccount.New, serviceaccount.Defaults()))
		synctest.Wait()
		if got, want := accounts.Calls(), []string{"create /api/v1/namespaces/active/serviceaccounts"}; !slices.Equal(got, want) {
			t.Errorf("the server was asked to %q, want %q", got, want)
		}
	})
}
