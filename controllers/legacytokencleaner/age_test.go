// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package legacytokencleaner

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/object"
)

const year = 365 * 24 * time.Hour

// now is noon of a day; a year before it is the 21st of November 2025.
var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func TestATokenIsUnusedAfterAPeriodWithoutUse(t *testing.T) {
	old := now.Add(-2 * year)
	for _, test := range []struct {
		name  string
		meta  object.Meta
		want  bool
		fails bool
	}{
		{"old, no use was noted", object.Meta{Created: old}, true, false},
		{"young", object.Meta{Created: now.Add(-year)}, false, false},
		{"just old enough", object.Meta{Created: now.Add(-year - time.Second)}, true, false},
		{"old, and being deleted", object.Meta{Created: old, Deleted: now}, false, false},
		{"used on the last day that counts", object.Meta{Created: old, Labels: object.LabelsOf(map[string]string{lastUsed: "2025-11-21"})}, false, false},
		{"used the day before", object.Meta{Created: old, Labels: object.LabelsOf(map[string]string{lastUsed: "2025-11-20"})}, true, false},
		{"used on a day that cannot be read", object.Meta{Created: old, Labels: object.LabelsOf(map[string]string{lastUsed: "yesterday"})}, false, true},
	} {
		got, err := unused(test.meta, now, year)
		if got != test.want || (err != nil) != test.fails {
			t.Errorf("%s: %t, %v, want %t", test.name, got, err, test.want)
		}
	}
}

func TestATokenIsFirstMarkedAndAfterAnotherPeriodRemoved(t *testing.T) {
	for since, want := range map[string]step{
		"":           mark,
		"yesterday":  mark,
		"2026-11-21": leave,
		"2025-11-21": leave,
		"2025-11-20": remove,
	} {
		meta := object.Meta{Labels: object.LabelsOf(map[string]string{invalidSince: since})}
		if got := next(meta, now, year); got != want {
			t.Errorf("invalid since %q: step %d, want %d", since, got, want)
		}
	}
	if got := next(object.Meta{}, now, year); got != mark {
		t.Errorf("without the label: step %d, want %d", got, mark)
	}
}

func TestAllWaysInWhichAPodRefersToASecretAreKnown(t *testing.T) {
	reference := func(name string) *corev1.LocalObjectReference { return &corev1.LocalObjectReference{Name: name} }
	from := func(name string) []corev1.EnvFromSource {
		return []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{}}, {SecretRef: &corev1.SecretEnvSource{LocalObjectReference: *reference(name)}}}
	}
	env := []corev1.EnvVar{{Name: "plain"}, {ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: *reference("env")}}}}
	pod := &corev1.Pod{Spec: corev1.PodSpec{
		ImagePullSecrets:    []corev1.LocalObjectReference{*reference("pull")},
		InitContainers:      []corev1.Container{{EnvFrom: from("init")}},
		Containers:          []corev1.Container{{EnvFrom: from("from"), Env: env}},
		EphemeralContainers: []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{EnvFrom: from("ephemeral")}}},
	}}
	for _, source := range []corev1.VolumeSource{
		{EmptyDir: &corev1.EmptyDirVolumeSource{}},
		{Secret: &corev1.SecretVolumeSource{SecretName: "secret"}},
		{AzureFile: &corev1.AzureFileVolumeSource{SecretName: "azure"}},
		{CephFS: &corev1.CephFSVolumeSource{SecretRef: reference("cephfs")}},
		{CephFS: &corev1.CephFSVolumeSource{}},
		{Cinder: &corev1.CinderVolumeSource{SecretRef: reference("cinder")}},
		{FlexVolume: &corev1.FlexVolumeSource{SecretRef: reference("flex")}},
		{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{{}, {Secret: &corev1.SecretProjection{LocalObjectReference: *reference("projected")}}}}},
		{RBD: &corev1.RBDVolumeSource{SecretRef: reference("rbd")}},
		{ScaleIO: &corev1.ScaleIOVolumeSource{SecretRef: reference("scaleio")}},
		{ISCSI: &corev1.ISCSIVolumeSource{SecretRef: reference("iscsi")}},
		{StorageOS: &corev1.StorageOSVolumeSource{SecretRef: reference("storageos")}},
		{CSI: &corev1.CSIVolumeSource{NodePublishSecretRef: reference("csi")}},
	} {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{VolumeSource: source})
	}
	want := []string{"pull", "init", "from", "env", "ephemeral", "secret", "azure", "cephfs", "cinder", "flex", "projected", "rbd", "scaleio", "iscsi", "storageos", "csi"}
	if got := secretsOf(pod); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
