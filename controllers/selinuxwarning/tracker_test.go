// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package selinuxwarning

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/object"
)

// onDriver returns a medium of a CSI driver, and always one of a plugin that always mounts with labels.
func onDriver(name string) medium { return medium{name: name, driver: "csi.example"} }
func always(name string) medium   { return medium{name: name} }

func podOf(namespace, name string) podID {
	return podID{object.Key{Namespace: namespace, Name: name}, types.UID("uid-of-" + name)}
}

// notes returns the Events that conflicts are, with the names of their Pods.
func notes(conflicts []conflict) (all []string) {
	for _, c := range conflicts {
		all = append(all, c.pod.key.String()+" "+c.property.reason()+": "+c.value+" / "+c.other.key.String()+" "+c.otherValue)
	}
	return all
}

func wantNotes(t *testing.T, when string, got []conflict, want ...string) {
	t.Helper()
	if !slices.Equal(notes(got), want) {
		t.Errorf("%s, the conflicts are\n%q\nwant\n%q", when, notes(got), want)
	}
}

// upstreamPods returns a tracker with the Pods of upstream's test of its cache. They have no conflict.
// Source: k8s.io/kubernetes/pkg/controller/volume/selinuxwarning/cache.
func upstreamPods(t *testing.T) *tracker {
	t.Helper()
	tr := newTracker()
	for _, p := range []struct {
		namespace, name, medium string
		trait                   trait
	}{
		{"ns1", "pod1-mountOption", "vol1", trait{"system_u:system_r:label1", mountOption}},
		{"ns2", "pod2-recursive", "vol2", trait{"system_u:system_r:label2", recursive}},
		{"ns3", "pod3-1", "vol3", trait{"system_u:system_r:label3", recursive}},
		{"ns3", "pod3-2", "vol3", trait{"system_u:system_r:label3", recursive}},
		{"ns4", "pod4-1", "vol4", trait{"system_u:system_r:label4", mountOption}},
		{"ns4", "pod4-2", "vol4", trait{"system_u:system_r:label4", mountOption}},
		{"ns5", "pod5", "vol5", trait{"::label5", mountOption}},
		{"ns6", "pod6", "vol6", trait{":system_r:label6", mountOption}},
		{"ns7", "pod7", "vol7", trait{"::label7:c0,c1", mountOption}},
		{"ns8", "pod8", "vol8", trait{"", mountOption}},
	} {
		n := tr.set(podOf(p.namespace, p.name), usage{uses: []use{{always(p.medium), p.trait}}})
		wantNotes(t, "after "+p.name, n.conflicts)
	}
	return tr
}

func TestAPodThatComesConflictsWithThoseOfItsVolume(t *testing.T) {
	for name, c := range map[string]struct {
		namespace, pod, medium string
		trait                  trait
		want                   []string
	}{
		"new-volume":            {"testns", "testpod", "vol-new", trait{"system_u:system_r:label-new", mountOption}, nil},
		"same-policy-and-label": {"testns", "testpod", "vol1", trait{"system_u:system_r:label1", mountOption}, nil},
		"another-label": {"testns", "testpod", "vol1", trait{"system_u:system_r:label-new", mountOption}, []string{
			"ns1/pod1-mountOption SELinuxLabelConflict: system_u:system_r:label1 / testns/testpod system_u:system_r:label-new",
			"testns/testpod SELinuxLabelConflict: system_u:system_r:label-new / ns1/pod1-mountOption system_u:system_r:label1",
		}},
		"another-policy": {"testns", "testpod", "vol1", trait{"", recursive}, []string{
			"ns1/pod1-mountOption SELinuxChangePolicyConflict: MountOption / testns/testpod Recursive",
			"testns/testpod SELinuxChangePolicyConflict: Recursive / ns1/pod1-mountOption MountOption",
		}},
		"replaced-alone": {"ns2", "pod2-recursive", "vol2", trait{"system_u:system_r:label-new", mountOption}, nil},
		"replaced-with-another-policy": {"ns3", "pod3-1", "vol3", trait{"system_u:system_r:label3", mountOption}, []string{
			"ns3/pod3-1 SELinuxChangePolicyConflict: MountOption / ns3/pod3-2 Recursive",
			"ns3/pod3-2 SELinuxChangePolicyConflict: Recursive / ns3/pod3-1 MountOption",
		}},
		"missing-user-and-role": {"testns", "testpod", "vol5", trait{"system_u:system_r:label5", mountOption}, nil},
		"another-type": {"testns", "testpod", "vol5", trait{"::label6", mountOption}, []string{
			"ns5/pod5 SELinuxLabelConflict: ::label5 / testns/testpod ::label6",
			"testns/testpod SELinuxLabelConflict: ::label6 / ns5/pod5 ::label5",
		}},
		"missing-parts": {"testns", "testpod", "vol6", trait{"system_u::label6", mountOption}, nil},
		"missing-level": {"testns", "testpod", "vol7", trait{"system_u:system_r:label7", mountOption}, []string{
			"ns7/pod7 SELinuxLabelConflict: ::label7:c0,c1 / testns/testpod system_u:system_r:label7",
			"testns/testpod SELinuxLabelConflict: system_u:system_r:label7 / ns7/pod7 ::label7:c0,c1",
		}},
		"no-label": {"testns", "testpod", "vol8", trait{"system_u:system_r:label8", mountOption}, nil},
		"no-label-and-a-level": {"testns", "testpod", "vol8", trait{"system_u:system_r:label8:c0,c1", mountOption}, []string{
			"ns8/pod8 SELinuxLabelConflict:  / testns/testpod system_u:system_r:label8:c0,c1",
			"testns/testpod SELinuxLabelConflict: system_u:system_r:label8:c0,c1 / ns8/pod8 ",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			tr := upstreamPods(t)
			pod, u := podOf(c.namespace, c.pod), usage{uses: []use{{always(c.medium), c.trait}}}
			wantNotes(t, "at first", tr.set(pod, u).conflicts, c.want...)
			wantNotes(t, "of all Pods", tr.all(), c.want...)
			wantNotes(t, "at the second time", tr.set(pod, u).conflicts)
			tr.remove(pod.key)
			wantNotes(t, "after the end of the Pod", tr.all())
		})
	}
}

func TestPodsThatShareSeveralVolumesHaveOneConflict(t *testing.T) {
	tr := newTracker()
	both := func(label string) usage {
		return usage{uses: []use{{always("v1"), trait{label, mountOption}}, {always("v2"), trait{label, mountOption}}}}
	}
	tr.set(podOf("ns", "a"), both("::a"))
	want := []string{"ns/a SELinuxLabelConflict: ::a / ns/b ::b", "ns/b SELinuxLabelConflict: ::b / ns/a ::a"}
	wantNotes(t, "at first", tr.set(podOf("ns", "b"), both("::b")).conflicts, want...)
	wantNotes(t, "of all Pods", tr.all(), want...)
}

func TestTheOtherPodsKeepTheirConflicts(t *testing.T) {
	tr := newTracker()
	for _, name := range []string{"a", "b", "c"} {
		tr.set(podOf("ns", name), usage{uses: []use{{always("v"), trait{"::" + name, mountOption}}}})
	}
	if n := len(tr.all()); n != 6 {
		t.Errorf("three Pods have %d conflicts, want 6", n)
	}
	tr.remove(podOf("ns", "a").key)
	tr.remove(podOf("ns", "a").key)
	wantNotes(t, "after the end of a Pod", tr.all(), "ns/b SELinuxLabelConflict: ::b / ns/c ::c", "ns/c SELinuxLabelConflict: ::c / ns/b ::b")
}

func TestOnlyTheVolumesOfDriversThatMountWithLabelsCount(t *testing.T) {
	tr := newTracker()
	want := []string{"ns/a SELinuxLabelConflict: ::a / ns/b ::b", "ns/b SELinuxLabelConflict: ::b / ns/a ::a"}
	for _, name := range []string{"a", "b"} {
		n := tr.set(podOf("ns", name), usage{uses: []use{{onDriver("v"), trait{"::" + name, mountOption}}}})
		wantNotes(t, "without the driver", n.conflicts)
	}
	wantNotes(t, "with another driver", tr.setDriver("other.example", true))
	wantNotes(t, "with a driver that mounts without labels", tr.setDriver("csi.example", false))
	wantNotes(t, "of all Pods", tr.all())
	wantNotes(t, "with the driver", tr.setDriver("csi.example", true), want...)
	wantNotes(t, "of all Pods", tr.all(), want...)
	wantNotes(t, "at the second time", tr.setDriver("csi.example", true))
	wantNotes(t, "after the end of the driver", tr.setDriver("csi.example", false))
	wantNotes(t, "of all Pods", tr.all())
	wantNotes(t, "with the driver once more", tr.setDriver("csi.example", true), want...)
}

// A Pod with the name of an earlier one has the conflicts of the earlier one again.
func TestANewPodOfTheNameIsAnotherPod(t *testing.T) {
	tr := newTracker()
	u := usage{uses: []use{{always("v"), trait{"::a", mountOption}}}, mixed: []string{"cache"}}
	tr.set(podOf("ns", "b"), usage{uses: []use{{always("v"), trait{"::b", mountOption}}}})
	first := tr.set(podOf("ns", "a"), u)
	later := podOf("ns", "a")
	later.uid = "later"
	second := tr.set(later, u)
	if len(first.conflicts) != 2 || !slices.Equal(notes(first.conflicts), notes(second.conflicts)) || !slices.Equal(second.mixed, []string{"cache"}) {
		t.Errorf("the first Pod has %q, and the second one %q with %q", notes(first.conflicts), notes(second.conflicts), second.mixed)
	}
	if again := tr.set(later, u); again.mixed != nil || again.conflicts != nil {
		t.Errorf("the second time, there is %v", again)
	}
	if len(tr.all()) != 2 {
		t.Errorf("all conflicts are %q", notes(tr.all()))
	}
}

// The texts are those of upstream's tests, and of its EventMessage.
func TestTheTextNamesNoPodOfAnotherNamespace(t *testing.T) {
	c := conflict{seLinuxLabel, podOf("ns", "pod1"), ":::s0:c1,c2", podOf("ns", "pod2"), ":::s0:c98,c99"}
	if got, want := c.note(), `SELinuxLabel ":::s0:c1,c2" conflicts with pod pod2 that uses the same volume as this pod with SELinuxLabel ":::s0:c98,c99". If both pods land on the same node, only one of them may access the volume.`; got != want {
		t.Errorf("the text is\n%s\nwant\n%s", got, want)
	}
	c = conflict{changePolicy, podOf("ns", "pod1"), "Recursive", podOf("other", "pod2"), "MountOption"}
	if got, want := c.note(), `SELinuxChangePolicy"Recursive" conflicts with another pod that uses the same volume as this pod with a different SELinuxChangePolicy. If both pods land on the same node, only one of them may access the volume.`; got != want {
		t.Errorf("the text is\n%s\nwant\n%s", got, want)
	}
}
