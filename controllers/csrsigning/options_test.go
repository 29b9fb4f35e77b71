// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package csrsigning

import (
	"errors"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/manager"
)

func TestOptionsThatCannotWorkAreRefusedAtTheStart(t *testing.T) {
	mgr, err := manager.New(&rest.Config{Host: "https://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	p := newPair(t, ellipticKey(t), time.Now().Add(time.Hour), nil)
	good := func() (Authority, error) { return ParseAuthority(p.certificate, p.key) }
	broken := func() (Authority, error) { return Authority{}, errors.New("the disk is gone") }
	for name, c := range map[string]struct {
		o    Options
		want string
	}{
		"workers":        {Options{Workers: -1, Authorities: ForAll(good)}, "-1 workers"},
		"a lifetime":     {Options{Workers: 1, Longest: -time.Hour, Authorities: ForAll(good)}, "-1h0m0s"},
		"no authority":   {Defaults(), "no certificate authority"},
		"one is unknown": {Options{Workers: 1, Longest: time.Hour, Authorities: map[string]Source{"example.com/mine": good}}, "example.com/mine"},
		"one is not there": {
			Options{Workers: 1, Longest: time.Hour, Authorities: map[string]Source{certificatesv1.KubeletServingSignerName: broken}},
			"kubernetes.io/kubelet-serving: the disk is gone",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := New(mgr, c.o); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("New = %v, want an error that says %q", err, c.want)
			}
		})
	}
	if c, err := New(mgr, Options{Workers: 1, Longest: time.Hour, Authorities: ForAll(good)}); err != nil || c.Name() != Name {
		t.Errorf("New = %v, %v", c, err)
	}
}
