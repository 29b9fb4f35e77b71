// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package tainteviction

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/object"
)

func TestThatATimeIsStoppedIsSaidOnceAndItIsForgotten(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "a", UID: "1"}}
	pod.Spec.Tolerations = []corev1.Toleration{tolerate("gone", 60)}
	var c clocks
	now := time.Unix(0, 0)
	for i, step := range []struct {
		taints                 []corev1.Taint
		bounded, stopped, runs bool
	}{
		{nil, false, false, false},
		{[]corev1.Taint{taint("gone")}, true, false, true},
		{nil, false, true, false},
		{nil, false, false, false}, // as it was said
	} {
		_, bounded, stopped := c.look(pod, step.taints, now)
		if runs := c.runs(object.KeyOf(pod)); bounded != step.bounded || stopped != step.stopped || runs != step.runs {
			t.Errorf("step %d: bounded %t, stopped %t, runs %t; want %t, %t, %t", i, bounded, stopped, runs, step.bounded, step.stopped, step.runs)
		}
	}
}
