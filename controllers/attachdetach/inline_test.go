// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package attachdetach

import (
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	csitranslation "k8s.io/csi-translation-lib"

	"github.com/setpoint-io/setpoint/wire"
)

// Each kind of volume that stands in a Pod and may be attached is found in the bytes of the Pod, and no other one is.
func TestInlineNamesAllVolumesThatMayBeAttached(t *testing.T) {
	translator := csitranslation.New()
	kinds := reflect.TypeFor[corev1.VolumeSource]()
	found := 0
	for i := range kinds.NumField() {
		var last corev1.Volume
		reflect.ValueOf(&last.VolumeSource).Elem().Field(i).Set(reflect.New(kinds.Field(i).Type.Elem()))
		pod := corev1.Pod{Spec: corev1.PodSpec{Volumes: []corev1.Volume{
			{Name: "first", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}, last,
		}}}
		raw, err := pod.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		want := last.FC != nil || last.ISCSI != nil || translator.IsInlineMigratable(&last)
		if got := wire.Protobuf.MayHave(raw, inline...); got != want {
			t.Errorf("a Pod with a volume %s: MayHave is %t, want %t", kinds.Field(i).Name, got, want)
		}
		if want {
			found++
		}
	}
	if found != len(inline) {
		t.Errorf("%d kinds of volumes may be attached, and inline has %d", found, len(inline))
	}
}
