// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package nodelifecycle

import (
	"encoding/json"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestOnlyPodsThatSayTheyAreReadyAreMarkedNotReady(t *testing.T) {
	for name, c := range map[string]struct {
		conditions []corev1.PodCondition
		want       bool
	}{
		"no conditions":     {nil, false},
		"ready":             {[]corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}, {Type: corev1.PodReady, Status: corev1.ConditionTrue}}, true},
		"unknown":           {[]corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionUnknown}}, true},
		"not ready already": {[]corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "u", ResourceVersion: "7"}, Status: corev1.PodStatus{Conditions: c.conditions}}
			patch, needed, err := notReadyPatch(pod, time.Unix(0, 0))
			if err != nil || needed != c.want {
				t.Fatalf("needed %t, error %v; want %t", needed, err, c.want)
			}
			if !needed {
				return
			}
			var got corev1.Pod
			if err := json.Unmarshal(patch.Data, &got); err != nil {
				t.Fatal(err)
			}
			if got.UID != "u" || got.ResourceVersion != "7" {
				t.Errorf("patch %s is not of one state of one Pod", patch.Data)
			}
			if len(got.Status.Conditions) != 1 || got.Status.Conditions[0].Type != corev1.PodReady || got.Status.Conditions[0].Status != corev1.ConditionFalse {
				t.Errorf("patch %s changes more or less than Ready", patch.Data)
			}
		})
	}
}
