// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestMalformedAnnotationsAreToldAndIgnored(t *testing.T) {
	for _, test := range []struct{ name, value, problem string }{
		{StartAfter, "soon", `annotation sim.setpoint.io/start-after is ignored: "soon" is not a duration such as "5s" or "5s+3s"`},
		{StartAfter, "never", `annotation sim.setpoint.io/start-after is ignored: "never" is not a duration such as "5s" or "5s+3s"`},
		{StartAfter, "", `annotation sim.setpoint.io/start-after is ignored: "" is not a duration such as "5s" or "5s+3s"`},
		{ReadyAfter, "5", `annotation sim.setpoint.io/ready-after is ignored: "5" is not a duration such as "5s", "5s+3s" or "never"`},
		{ReadyAfter, "5s+", `annotation sim.setpoint.io/ready-after is ignored: "5s+" is not a duration such as "5s", "5s+3s" or "never"`},
		{UnreadyAfter, "-5s", `annotation sim.setpoint.io/unready-after is ignored: "-5s" is negative or too long`},
		{ExitAfter, "2562047h+2562047h", `annotation sim.setpoint.io/exit-after is ignored: "2562047h+2562047h" is negative or too long`},
		{ExitCode, "256", `annotation sim.setpoint.io/exit-code is ignored: "256" is not an exit code from 0 to 255`},
		{ExitCode, "-1", `annotation sim.setpoint.io/exit-code is ignored: "-1" is not an exit code from 0 to 255`},
		{ImagePull, "fail", `annotation sim.setpoint.io/image-pull is ignored: "fail" is neither "error" nor "ok"`},
	} {
		got, problems := behaviorOf(newPod(corev1.RestartPolicyAlways, test.name, test.value))
		if len(problems) != 1 || problems[0] != test.problem {
			t.Errorf("%s=%q: got %q, want %q", test.name, test.value, problems, test.problem)
		}
		if want, _ := behaviorOf(newPod(corev1.RestartPolicyAlways)); got != want {
			t.Errorf("%s=%q counts as %+v, want %+v", test.name, test.value, got, want)
		}
	}
}

func TestUnknownAnnotationOfThePrefixIsTold(t *testing.T) {
	_, problems := behaviorOf(newPod(corev1.RestartPolicyAlways, Prefix+"begin-after", "5s", "example.com/start-after", "x"))
	if len(problems) != 1 || !strings.Contains(problems[0], "begin-after is ignored: no such annotation") || !strings.Contains(problems[0], StartAfter) {
		t.Errorf("got %q", problems)
	}
}

func TestJitterIsSpreadAndStaysTheSame(t *testing.T) {
	s, err := parseSpan("5s+3s", false)
	if err != nil {
		t.Fatal(err)
	}
	low, high := time.Hour, time.Duration(0)
	for i := range 100 {
		uid := types.UID(strings.Repeat("x", i))
		got := s.of(uid, "start", 0)
		if again := s.of(uid, "start", 0); again != got {
			t.Fatalf("asked twice: %s and %s", got, again)
		}
		low, high = min(low, got), max(high, got)
	}
	if low < 5*time.Second || high > 8*time.Second || high-low < 2*time.Second {
		t.Errorf("100 Pods got from %s to %s; want all of 5s to 8s used", low, high)
	}
}

func TestImagesThatCannotBePulled(t *testing.T) {
	for image, want := range map[string]bool{
		"nginx":                          true,
		"nginx:1.27":                     true,
		"invalid":                        true, // a name on the default registry
		"library/invalid:1":              true,
		"registry.k8s.io/pause@sha256:0": true,
		"invalid/web":                    false,
		"registry.invalid/web:v1":        false,
		"registry.invalid:5000/web":      false,
		"nginx:pull-error":               false,
	} {
		if got := (behavior{}).pullable(image); got != want {
			t.Errorf("%s: pullable %t, want %t", image, got, want)
		}
	}
	if !(behavior{imagePull: "ok"}).pullable("registry.invalid/web") {
		t.Error("the annotation does not overrule the name")
	}
}

func FuzzBehavior(f *testing.F) {
	f.Add("5s+3s", "7", "error")
	f.Add("never", "-1", "")
	f.Fuzz(func(t *testing.T, value, code, pull string) {
		pod := newPod(corev1.RestartPolicyAlways, StartAfter, value, ReadyAfter, value, UnreadyAfter, value, ExitAfter, value, ExitCode, code, ImagePull, pull)
		does, _ := behaviorOf(pod)
		for name, s := range map[string]span{StartAfter: does.start, ReadyAfter: does.ready, UnreadyAfter: does.unready, ExitAfter: does.exit} {
			if d := s.of("uid", name, 0); d < 0 {
				t.Errorf("%s %q lasts %s", name, value, d)
			}
		}
	})
}
