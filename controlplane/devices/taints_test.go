// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package devices

import (
	"slices"
	"strings"
	"testing"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// taintsOf returns the taints of the devices, each as the annotation would have it.
func taintsOf(all []resourcev1.Device) (texts []string) {
	for _, device := range all {
		for _, taint := range device.Taints {
			texts = append(texts, device.Name+"="+taint.Key+"="+taint.Value+":"+string(taint.Effect))
		}
	}
	return texts
}

func TestAnAnnotationGivesDevicesTaints(t *testing.T) {
	for _, c := range []struct{ value, want string }{
		{"", ""},
		{"gpu-0=unhealthy:NoExecute", "gpu-0=unhealthy=:NoExecute"},
		{"gpu-1=example.com/ecc=double-bit:NoSchedule", "gpu-1=example.com/ecc=double-bit:NoSchedule"},
		{"gpu-3=old:None, gpu-0=unhealthy:NoExecute,gpu-3=hot:NoSchedule", "gpu-0=unhealthy=:NoExecute gpu-3=old=:None gpu-3=hot=:NoSchedule"},
	} {
		all := inventory()
		if problems := taint(all, c.value); len(problems) > 0 {
			t.Errorf("%q: problems %q", c.value, problems)
		}
		if got := strings.Join(taintsOf(all), " "); got != c.want {
			t.Errorf("%q gives %q, want %q", c.value, got, c.want)
		}
	}
}

func TestATaintThatCannotBeReadIsNamedAndTheOthersCount(t *testing.T) {
	const ignored = "a taint of annotation sim.setpoint.io/device-taint is ignored: "
	for _, c := range []struct{ text, problem string }{
		{"gpu-0", `"gpu-0" is not DEVICE=KEY:EFFECT or DEVICE=KEY=VALUE:EFFECT, such as "gpu-0=unhealthy:NoExecute"`},
		{"gpu-0=unhealthy", `"gpu-0=unhealthy" is not DEVICE=KEY:EFFECT or DEVICE=KEY=VALUE:EFFECT, such as "gpu-0=unhealthy:NoExecute"`},
		{"gpu-9=unhealthy:NoExecute", `"gpu-9=unhealthy:NoExecute": the node has no device "gpu-9"; it has gpu-0 to gpu-3`},
		{"gpu-0=unhealthy:Nothing", `"gpu-0=unhealthy:Nothing": the effect "Nothing" is not NoSchedule, NoExecute or None`},
		{"gpu-0=:NoExecute", `"gpu-0=:NoExecute": the key "": name part must be non-empty`},
		{"gpu-0=a=-b:NoExecute", `"gpu-0=a=-b:NoExecute": the value "-b": a valid label must be`},
		{"gpu-0=twice:NoExecute,gpu-0=twice=b:NoExecute", `"gpu-0=twice=b:NoExecute": gpu-0 has a taint with this key and effect already`},
	} {
		all := inventory()
		problems := taint(all, c.text+",gpu-2=other:NoSchedule")
		if len(problems) != 1 || !strings.HasPrefix(problems[0], ignored+c.problem) {
			t.Errorf("%q: problems\n%q, want\n%q", c.text, problems, ignored+c.problem)
		}
		if !slices.Contains(taintsOf(all), "gpu-2=other=:NoSchedule") {
			t.Errorf("%q: the taint after it was not given: %q", c.text, taintsOf(all))
		}
	}
}

func TestADeviceHasNoMoreTaintsThanTheServerTakes(t *testing.T) {
	var parts []string
	for i := range maxTaints + 1 {
		parts = append(parts, "gpu-0=key-"+string(rune('a'+i))+":None")
	}
	all := inventory()
	problems := taint(all, strings.Join(parts, ","))
	if len(problems) != 1 || len(all[0].Taints) != maxTaints {
		t.Errorf("%d taints, and problems %q; want %d taints, and one problem", len(all[0].Taints), problems, maxTaints)
	}
}

// The server would take a taint without its time for a new one, and an eviction that waits would
// begin again.
func TestATaintThatStaysKeepsItsTime(t *testing.T) {
	since := metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	had, wanted := inventory(), inventory()
	taint(had, "gpu-0=unhealthy:NoExecute,gpu-1=hot:NoSchedule")
	had[0].Taints[0].TimeAdded, had[1].Taints[0].TimeAdded = &since, &since
	taint(wanted, "gpu-0=unhealthy:NoExecute,gpu-1=hot=very:NoSchedule")
	keepTimes(wanted, had)
	if !wanted[0].Taints[0].TimeAdded.Equal(&since) {
		t.Errorf("the taint that stays has the time %v, want %v", wanted[0].Taints[0].TimeAdded, since)
	}
	if wanted[1].Taints[0].TimeAdded != nil {
		t.Errorf("the taint with another value has the time %v, want none", wanted[1].Taints[0].TimeAdded)
	}
}
