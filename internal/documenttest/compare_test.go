// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package documenttest

import "testing"

func TestOutputsAreTheSameWithoutWhatVaries(t *testing.T) {
	for _, test := range []struct {
		shown, printed string
		want           bool
	}{
		{"web   10/10   10   0s", "web  10/10  10  1m2s", true},
		{"web   10/10   10   0s", "web  9/10  10  1m2s", false},
		{"web-5d8f7f9c6b-x2x5z Running", "web-5d8f7f9c6b-bcd24 Running", true},
		{"web-5d8f7f9c6b-x2x5z Running", "web-5d8f7f9c6c-bcd24 Running", false},
		{"exited: exit-after=2s", "exited: exit-after=5s", false},
		{"after 2.155s", "after 3ms", true},
		{"ready after 2.3 s. Its", "ready after 12 s. Its", true},
		{"at 10.99.110.128:80", "at 10.0.0.1:8080", true},
		{"/tmp/setpoint-controlplane-627709898/kubeconfig", "run/kubeconfig", true},
		{"trying: …", "trying: anything at all", true},
		{"trying: …", "failed: anything at all", false},
		{"one\ntwo", "one\n", false},
		{"14:03:12 ! a", "01:02:03 ! a", true},
		{"deployment-controller, run 40  created", "deployment-controller, run 7  created", true},
		{"deployment-controller, run 40  created", "job-controller, run 40  created", false},
	} {
		if got := Same(test.shown, test.printed); got != test.want {
			t.Errorf("%q and %q: %v, want %v", test.shown, test.printed, got, test.want)
		}
	}
}

func TestLinesOfABlockAreFoundInTheirOrder(t *testing.T) {
	const printed = "starting\n✓ etcd  0.2 s\n✓ nodes  0.1 s\nready\n"
	for shown, want := range map[string]string{
		"$ make up\n✓ etcd 0.3 s\n\nready\n": "",
		"ready\n✓ etcd 0.3 s\n":              "✓ etcd 0.3 s",
		"✓ etcd 0.3 s\n✓ manager 0.3 s\n":    "✓ manager 0.3 s",
	} {
		if got := Missing(shown, printed); got != want {
			t.Errorf("of %q, %q is missing, want %q", shown, got, want)
		}
	}
}
