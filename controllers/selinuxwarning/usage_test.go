// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package selinuxwarning

import (
	"errors"
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestAPodUsesTheVolumesThatItsContainersMount(t *testing.T) {
	pod := &corev1.Pod{Spec: corev1.PodSpec{
		Containers: []corev1.Container{mounting("one", "data", "same", "mixed", "unbound", "own"), mounting("two", "mixed", "unbound"), mounting("", "plain")},
	}}
	for _, name := range []string{"idle", "data", "same", "mixed", "unbound", "own", "plain", "broken"} {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: name})
	}
	pod.Spec.Containers[0].VolumeMounts = append(pod.Spec.Containers[0].VolumeMounts, corev1.VolumeMount{Name: "broken"}, corev1.VolumeMount{Name: "not there"})
	broken := errors.New("not to be decoded")
	u, err := usageOf(pod, func(v *corev1.Volume) (medium, bool, error) {
		switch v.Name {
		case "unbound":
			return medium{}, false, nil
		case "own":
			return medium{}, true, nil
		case "broken":
			return medium{}, false, broken
		case "same":
			return always("data"), true, nil
		}
		return always(v.Name), true, nil
	})
	want := usage{
		uses:  []use{{always("data"), trait{":::one", mountOption}}, {always("plain"), trait{"", recursive}}},
		mixed: []string{"mixed"},
	}
	if !reflect.DeepEqual(u, want) || !errors.Is(err, broken) {
		t.Errorf("the usage is %+v, %v, want %+v", u, err, want)
	}
}
