// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/setpoint-io/setpoint/object"
)

func TestAnAnswerTellsWhetherTheObjectIsGone(t *testing.T) {
	now, seconds := metav1.Now(), func(n int64) *int64 { return &n }
	deleted := metav1.ObjectMeta{Name: "o", DeletionTimestamp: &now}
	kept := *deleted.DeepCopy()
	kept.Finalizers = []string{"example.com/f"}
	graceful, over := *deleted.DeepCopy(), *deleted.DeepCopy()
	graceful.DeletionGracePeriodSeconds, over.DeletionGracePeriodSeconds = seconds(30), seconds(0)
	spec := corev1.NamespaceSpec{Finalizers: []corev1.FinalizerName{corev1.FinalizerKubernetes}}
	untyped := func(finalizers ...any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{"deletionTimestamp": "2026-03-02T11:00:00Z"}, "spec": map[string]any{"finalizers": finalizers},
		}}
	}
	for name, c := range map[string]struct {
		plural string
		o      object.Object
		want   bool
	}{
		"not deleted":                              {"pods", &corev1.Pod{}, false},
		"the last finalizer removed":               {"pods", &corev1.Pod{ObjectMeta: deleted}, true},
		"a finalizer left":                         {"pods", &corev1.Pod{ObjectMeta: kept}, false},
		"within its grace period":                  {"pods", &corev1.Pod{ObjectMeta: graceful}, false},
		"its grace period over":                    {"pods", &corev1.Pod{ObjectMeta: over}, true},
		"namespace with content":                   {"namespaces", &corev1.Namespace{ObjectMeta: deleted, Spec: spec}, false},
		"namespace finalized":                      {"namespaces", &corev1.Namespace{ObjectMeta: deleted}, true},
		"namespace finalized, a finalizer left":    {"namespaces", &corev1.Namespace{ObjectMeta: kept}, false},
		"namespace with content, unstructured":     {"namespaces", untyped("kubernetes"), false},
		"namespace finalized, unstructured":        {"namespaces", untyped(), true},
		"namespace of which the metadata is known": {"namespaces", &metav1.PartialObjectMetadata{ObjectMeta: deleted}, false},
	} {
		t.Run(name, func(t *testing.T) {
			resource := object.Resource{Version: "v1", Plural: c.plural}
			if got := goes(resource, c.o); got != c.want {
				t.Errorf("goes = %v, want %v", got, c.want)
			}
		})
	}
}
