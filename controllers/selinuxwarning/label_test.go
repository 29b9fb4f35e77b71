// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package selinuxwarning

import (
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

const (
	mountOption = corev1.SELinuxChangePolicyMountOption
	recursive   = corev1.SELinuxChangePolicyRecursive
)

// The first cases are those of upstream's tests of the translator.
func TestLabelsConflictUnlessANodeCanMakeThemTheSame(t *testing.T) {
	for _, c := range []struct {
		a, b     string
		conflict bool
	}{
		{"", "", false},
		{"", ":::", false},
		{"system_u:system_r:container_t:s0:c1,c2", "system_u:system_r:container_t:s0:c1,c2", false},
		{"system_u:system_r:container_t:s0:c1,c2", "system_u:system_r:container_t:s0:c98,c99", true},
		{"system_u:system_r:container_t:s0:c1,c2", ":::s0:c1,c2", false},
		{"system_u:system_r:container_t:s0:c1,c2", ":::s0:c98,c99", true},
		{":::s0:c1,c2", "", true},
		{":::s0:c1,c2", ":::", true},
		{"system_u:system_r:container_t:", "", false},
		{"user1:::", "user2:::", true},
		{":role1::", ":role2::", true},
		{"::type1:", "::type2:", true},
		{"user1:::", ":role2::", false},
		{"::label5", "::label6", true},
		{":system_r:label6", "system_u::label6", false},
		{"::label7:c0,c1", "system_u:system_r:label7", true},
		{"", "system_u:system_r:label8", false},
		{"", "system_u:system_r:label8:c0,c1", true},
	} {
		if labelsConflict(c.a, c.b) != c.conflict || labelsConflict(c.b, c.a) != c.conflict {
			t.Errorf("%q and %q conflict: want %t both ways", c.a, c.b, c.conflict)
		}
	}
}

func TestALabelHasThePartsOfTheOptions(t *testing.T) {
	for label, o := range map[string]corev1.SELinuxOptions{
		"":                     {},
		":::s0:c1,c2":          {Level: "s0:c1,c2"},
		"user:role:type:s0":    {User: "user", Role: "role", Type: "type", Level: "s0"},
		"::container_t:":       {Type: "container_t"},
		"system_u:::s0:c1,c99": {User: "system_u", Level: "s0:c1,c99"},
	} {
		if got := labelOf(&o); got != label {
			t.Errorf("the label of %v is %q, want %q", o, got, label)
		}
	}
}

func TestATraitIsRecursiveWithoutALabel(t *testing.T) {
	for _, c := range []struct {
		policy *corev1.PodSELinuxChangePolicy
		label  string
		want   trait
	}{
		{nil, ":::s0", trait{":::s0", mountOption}},
		{nil, "", trait{"", recursive}},
		{new(mountOption), ":::s0", trait{":::s0", mountOption}},
		{new(mountOption), "", trait{"", recursive}},
		{new(recursive), ":::s0", trait{"", recursive}},
	} {
		pod := &corev1.Pod{Spec: corev1.PodSpec{SecurityContext: &corev1.PodSecurityContext{SELinuxChangePolicy: c.policy}}}
		if got := traitOf(pod, c.label); got != c.want {
			t.Errorf("the trait of %q with the policy %v is %v, want %v", c.label, c.policy, got, c.want)
		}
	}
	if got := traitOf(&corev1.Pod{}, ":::s0"); got != (trait{":::s0", mountOption}) {
		t.Errorf("the trait of a Pod without a security context is %v", got)
	}
}

// mounting returns a container that mounts volumes. A level of "" is a container without options.
func mounting(level string, volumes ...string) corev1.Container {
	var c corev1.Container
	if level != "" {
		c.SecurityContext = &corev1.SecurityContext{SELinuxOptions: &corev1.SELinuxOptions{Level: level}}
	}
	for _, v := range volumes {
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: v})
	}
	return c
}

func TestContainersMountWithTheirOwnLabelOrThatOfThePod(t *testing.T) {
	late := mounting("e", "late")
	pod := &corev1.Pod{Spec: corev1.PodSpec{
		SecurityContext: &corev1.PodSecurityContext{SELinuxOptions: &corev1.SELinuxOptions{Level: "p"}},
		InitContainers:  []corev1.Container{mounting("i", "early", "all")},
		Containers: []corev1.Container{
			mounting("", "pods", "all", "twice"), mounting("c", "all"), mounting("", "twice"),
			{VolumeDevices: []corev1.VolumeDevice{{Name: "block"}}},
		},
		EphemeralContainers: []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{
			SecurityContext: late.SecurityContext, VolumeMounts: late.VolumeMounts,
		}}},
	}}
	want := map[string][]string{
		"early": {":::i"}, "all": {":::i", ":::p", ":::c"}, "pods": {":::p"}, "twice": {":::p"}, "late": {":::e"},
	}
	if got := labelsByVolume(pod); !reflect.DeepEqual(got, want) {
		t.Errorf("the labels are %v, want %v", got, want)
	}
	pod.Spec.SecurityContext = nil
	if got, ok := labelsByVolume(pod)["pods"]; !ok || len(got) != 0 {
		t.Errorf("without options anywhere, the volume is mounted: %t, with %q", ok, got)
	}
}
