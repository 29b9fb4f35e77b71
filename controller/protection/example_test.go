// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package protection_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/controller/protection"
	"github.com/setpoint-io/setpoint/manager"
	"github.com/setpoint-io/setpoint/object"
)

// A ConfigMap stays while a Secret of the same name exists.
func Example() {
	mgr, err := manager.New(&rest.Config{Host: "https://127.0.0.1:6443"}) // nothing connects before Run
	if err != nil {
		fmt.Println(err)
		return
	}
	maps, secrets := cache.Informer[*corev1.ConfigMap](mgr), cache.Informer[*corev1.Secret](mgr)
	p := protection.Protection[*corev1.ConfigMap]{
		Objects:   maps,
		Finalizer: "example.com/needed-by-secret",
		UsedBy: func(_ context.Context, o *corev1.ConfigMap) ([]string, error) {
			if metav1.HasAnnotation(o.ObjectMeta, "example.com/not-needed") || !secrets.Snapshot().Get(object.KeyOf(o)).Exists() {
				return nil, nil
			}
			return []string{"Secret " + o.Name}, nil
		},
	}
	c := controller.New("config-protection", p.Reconcile,
		controller.For(maps), controller.Watches(secrets, controller.SameKey))
	fmt.Println("added", c.Name(), mgr.Add(c) == nil)
	// Output:
	// added config-protection true
}
