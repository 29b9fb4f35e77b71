// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplanetest

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/client"
)

var notInNames = regexp.MustCompile(`[^a-z0-9]+`)

// Namespace creates a namespace for a test, with a name like the test's. Unless the cluster is
// Bare, it also creates the default ServiceAccount, without which no Pod is admitted. The
// namespace stays until the cluster ends or is given back: to empty one is the work of a
// controller.
func (c *Cluster) Namespace(t testing.TB) string {
	t.Helper()
	namespaces := client.For[*corev1.Namespace](c.Client)
	test := strings.Trim(notInNames.ReplaceAllString(strings.ToLower(t.Name()), "-"), "-")
	var name string
	for {
		name = fmt.Sprintf("%.50s-%05x", test, rand.IntN(1<<20))
		_, err := namespaces.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
		if apierrors.IsAlreadyExists(err) {
			continue // the name is taken: once in a thousand runs of a test with 40 namespaces
		}
		if err != nil {
			t.Fatalf("making a namespace for the test: %v", err)
		}
		break
	}
	if c.options.Bare {
		return name
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "default"}}
	_, err := client.For[*corev1.ServiceAccount](c.Client).Create(t.Context(), account)
	if err != nil && !apierrors.IsAlreadyExists(err) { // a controller under test may be quicker
		t.Fatalf("making the default ServiceAccount of %s: %v", name, err)
	}
	return name
}
