// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/object"
)

// note returns a ConfigMap with a lifetime.
func note(key object.Key, lifetime string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: key.Namespace, Name: key.Name, Annotations: map[string]string{expiresAfter: lifetime},
	}}
}

func TestTimeLeft(t *testing.T) {
	created := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	for _, test := range []struct {
		lifetime string
		now      time.Time
		want     time.Duration
	}{
		{"10m", created.Add(3 * time.Minute), 7 * time.Minute},
		{"10m", created.Add(11 * time.Minute), -time.Minute},
	} {
		m := note(object.Key{Name: "note"}, test.lifetime)
		m.CreationTimestamp = metav1.NewTime(created)
		if got, _, err := timeLeft(m, test.now); err != nil || got != test.want {
			t.Errorf("of %s are left %s at %s, error %v; want %s", test.lifetime, got, test.now, err, test.want)
		}
	}
	if _, _, err := timeLeft(note(object.Key{Name: "note"}, "soon"), created); err == nil {
		t.Error("a lifetime that cannot be read is no error")
	}
}
