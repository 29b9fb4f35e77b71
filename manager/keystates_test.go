// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"strings"
	"testing"
	"time"

	"github.com/setpoint-io/setpoint/runs"
)

// A user who may see one object learns that its loop waits for an own write, and neither the name of the other object nor the
// error of an informer.
func TestTheStateOfALoopHidesNamesAndErrors(t *testing.T) {
	web := runs.Object{Kind: "ConfigMap", Namespace: "shop", Name: "web"}
	secret := runs.Object{Kind: "Secret", Namespace: "shop", Name: "plan", UID: "u"}
	at := time.Now()
	held := func() runs.KeyState {
		return runs.KeyState{Controller: "keeper", Key: "shop/web", Object: web, State: runs.StateHeld, Since: &at,
			Unseen:    &runs.Unseen{Verb: "create", Object: secret, Version: "7", Kind: "secrets"},
			Informers: []runs.InformerLag{{Kind: "secrets", Trouble: `User "plan-reader" cannot list`}}}
	}
	for name, c := range map[string]struct {
		sight sight
		want  string
	}{
		"all runs": {sight{all: true}, `seen its own create of Secret shop/plan, since ` + clock(at) + `, the informer of secrets is not current: User "plan-reader" cannot list`},
		"one object": {sight{asked: web, known: map[runs.Object]bool{{Kind: "Secret", Namespace: "shop"}: false}},
			`seen its own create of Secret, since ` + clock(at) + `, the informer of secrets is not current: why is shown to users who may see all runs`},
		"one object, and Secrets": {sight{asked: web, known: map[runs.Object]bool{{Kind: "Secret", Namespace: "shop"}: true}}, "its own create of Secret shop/plan"},
	} {
		t.Run(name, func(t *testing.T) {
			s := held()
			c.sight.hideInState(t.Context(), &s)
			if text := stateText(&s); !strings.Contains(text, c.want) {
				t.Errorf("the state is %q, want %q", text, c.want)
			}
			if !c.sight.all && !c.sight.known[runs.Object{Kind: "Secret", Namespace: "shop"}] && (s.Unseen.Object.Name != "" || s.Unseen.Object.UID != "" || s.Unseen.Version != "") {
				t.Errorf("the write is %+v", s.Unseen)
			}
		})
	}
}
