// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package podgc

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/wire"
)

func TestThePhaseIsReadFromTheEncodedPod(t *testing.T) {
	for _, want := range []corev1.PodPhase{"", corev1.PodRunning, corev1.PodFailed} {
		raw, err := newPod("a", "n", inPhase(want)).Marshal()
		if err != nil {
			t.Fatal(err)
		}
		got, err := wire.Protobuf.Text(raw, phase)
		if err != nil || string(got) != string(want) {
			t.Errorf("a Pod that is %q reads %q (%v)", want, got, err)
		}
	}
}
