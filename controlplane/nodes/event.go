// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// eventTimeout bounds how long an Event may delay the object that it is about.
const eventTimeout = 2 * time.Second

func reference(kind string, o interface {
	runtime.Object
	metav1.Object
}) corev1.ObjectReference {
	return corev1.ObjectReference{
		APIVersion: "v1", Kind: kind, Namespace: o.GetNamespace(), Name: o.GetName(), UID: o.GetUID(),
		ResourceVersion: o.GetResourceVersion(),
	}
}

// event records an Event, as well as it goes: nothing depends on one.
func (s *simulation) event(ctx context.Context, about corev1.ObjectReference, e podEvent) {
	namespace := about.Namespace
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	ctx, cancel := context.WithTimeout(ctx, eventTimeout)
	defer cancel()
	now := metav1.Now()
	_, err := s.client.CoreV1().Events(namespace).Create(ctx, &corev1.Event{
		ObjectMeta:          metav1.ObjectMeta{GenerateName: about.Name + "."},
		InvolvedObject:      about,
		Type:                e.kind,
		Reason:              e.reason,
		Message:             e.message,
		Source:              corev1.EventSource{Component: userAgent},
		ReportingController: userAgent,
		FirstTimestamp:      now,
		LastTimestamp:       now,
		Count:               1,
	}, metav1.CreateOptions{})
	if err != nil {
		s.log.Debug("an Event was not recorded", "object", about.Name, "reason", e.reason, "err", err)
	}
}
