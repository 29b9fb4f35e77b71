// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package fakeapi_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

func TestAResourceThatIsWithdrawnDuringARequestStillAnswersIt(t *testing.T) {
	withdraw := func(api *fakeapi.Server) { api.Withdraw(configMaps) }
	for name, hook := range map[string]func(*fakeapi.Server){
		"before the request is carried out": func(api *fakeapi.Server) {
			api.Before(func(*fakeapi.Request) *metav1.Status { withdraw(api); return nil })
		},
		"before the answer is sent": func(api *fakeapi.Server) {
			api.LoseAnswer(func(*fakeapi.Request) bool { withdraw(api); return false })
		},
	} {
		t.Run(name, func(t *testing.T) {
			api := fakeapi.New()
			if err := api.Serve(configMaps).Add(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}}); err != nil {
				t.Fatal(err)
			}
			hook(api)
			c, err := client.New(api.Config())
			if err != nil {
				t.Fatal(err)
			}
			maps := client.For[*corev1.ConfigMap](c)
			if _, err := maps.Get(t.Context(), object.Key{Namespace: "ns", Name: "a"}); err != nil {
				t.Errorf("the request that was under way: %v", err)
			}
			if _, err := maps.Get(t.Context(), object.Key{Namespace: "ns", Name: "a"}); err == nil {
				t.Error("the server still serves what was withdrawn")
			}
		})
	}
}
