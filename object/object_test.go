// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package object_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/object"
)

func TestParseKeyReadsWhatStringWrites(t *testing.T) {
	for _, k := range []object.Key{{Name: "node-1"}, {Namespace: "team-a", Name: "web"}} {
		got, err := object.ParseKey(k.String())
		if err != nil || got != k {
			t.Errorf("ParseKey(%q) = %v, %v; want %v", k, got, err, k)
		}
	}
}

func TestParseKeyRefuses(t *testing.T) {
	for _, s := range []string{"", "/", "a/", "/b", "a/b/c"} {
		if k, err := object.ParseKey(s); err == nil {
			t.Errorf("ParseKey(%q) = %v, want an error", s, k)
		}
	}
}

func TestVersionsCompareAsIntegersOfAnyLength(t *testing.T) {
	ordered := []string{"", "1", "9", "10", "18446744073709551615", "18446744073709551616", "99999999999999999999999"}
	for i, a := range ordered {
		for j, b := range ordered {
			va, err := object.ParseVersion(a)
			if err != nil {
				t.Fatal(err)
			}
			vb, err := object.ParseVersion(b)
			if err != nil {
				t.Fatal(err)
			}
			want := 0
			if i < j {
				want = -1
			} else if i > j {
				want = 1
			}
			if got := va.Compare(vb); got != want {
				t.Errorf("%q compared with %q = %d, want %d", a, b, got, want)
			}
		}
	}
}

func TestParseVersionRefusesWhatIsNoNumber(t *testing.T) {
	for _, s := range []string{"x", "-1", "1.5", "01", "00", " 1", "1 "} {
		if v, err := object.ParseVersion(s); err == nil {
			t.Errorf("ParseVersion(%q) = %q, want an error", s, v)
		}
	}
	if v, err := object.ParseVersion("0"); err != nil || !v.IsZero() {
		t.Errorf("ParseVersion(0) = %q, %v; want the zero version", v, err)
	}
}

func TestControllerOfFindsTheManagingOwner(t *testing.T) {
	yes, no := true, false
	refs := []metav1.OwnerReference{{Name: "plain"}, {Name: "not", Controller: &no}, {Name: "managing", Controller: &yes}}
	if got := object.ControllerOf(refs); got == nil || got.Name != "managing" {
		t.Errorf("ControllerOf = %v, want managing", got)
	}
	if got := object.ControllerOf(refs[:2]); got != nil {
		t.Errorf("ControllerOf = %v, want none", got)
	}
}

func FuzzParseKey(f *testing.F) {
	f.Add("team-a/web")
	f.Add("node-1")
	f.Fuzz(func(t *testing.T, s string) {
		k, err := object.ParseKey(s)
		if err == nil && k.String() != s {
			t.Errorf("ParseKey(%q).String() = %q", s, k)
		}
	})
}
