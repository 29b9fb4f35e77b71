// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplanetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
)

var notInNames = regexp.MustCompile(`[^a-z0-9]+`)

// Namespace makes a namespace for a test, named after it, and unless the cluster
// is Bare the ServiceAccount without which no Pod is admitted. It is not removed:
// that is the work of a controller, and the cluster goes as a whole.
func (c *Cluster) Namespace(t testing.TB) string {
	t.Helper()
	namespaces := client.For[*corev1.Namespace](c.Client)
	test := strings.Trim(notInNames.ReplaceAllString(strings.ToLower(t.Name()), "-"), "-")
	var name string
	for {
		name = fmt.Sprintf("%.50s-%05x", test, rand.IntN(1<<20))
		_, err := namespaces.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
		if apierrors.IsAlreadyExists(err) {
			continue // a test that makes 40 of them meets one in a thousand times
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

// untaint makes the nodes schedulable. They are born with the taint not-ready,
// which no server and no kubelet lifts.
func (c *Cluster) untaint(ctx context.Context) error {
	nodes := client.For[*corev1.Node](c.Client)
	for i := range c.options.Nodes {
		key := object.Key{Name: fmt.Sprintf("node-%d", i)}
		for {
			node, err := nodes.Get(ctx, key)
			if err != nil {
				return fmt.Errorf("freeing %s of its taints: %w", key.Name, err)
			}
			node = node.DeepCopy()
			node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints, func(t corev1.Taint) bool {
				return t.Key == corev1.TaintNodeNotReady
			})
			_, err = nodes.Update(ctx, node)
			if apierrors.IsConflict(err) {
				continue // a heartbeat came between
			}
			if err != nil {
				return fmt.Errorf("freeing %s of its taints: %w", key.Name, err)
			}
			break
		}
	}
	return nil
}
