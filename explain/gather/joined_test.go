// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package gather_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/setpoint-io/setpoint/explain/gather"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/runs"
	"github.com/setpoint-io/setpoint/workqueue"
)

// because returns the cause of a change of an object, as an informer makes it.
func because(of runs.Object, version string) workqueue.Causes {
	queue := workqueue.New(workqueue.Options[object.Key]{})
	queue.AddWith(workqueue.Add{Cause: workqueue.Cause{Source: "changes", Verb: workqueue.Updated, Version: version, Ref: of.Ref()}}, of.Ref().Key)
	item, _ := queue.Get()
	return item.Causes
}

func newRecord(t *testing.T) *runs.Record {
	t.Helper()
	record, err := runs.New(runs.LeastBytes)
	if err != nil {
		t.Fatal(err)
	}
	return record
}

// silent is a manager that does not answer.
type silent struct{}

func (silent) About(ctx context.Context, _ runs.Object) (gather.Found, error) {
	<-ctx.Done()
	return gather.Found{}, errors.New("the manager at https://10.0.0.9:443 does not answer")
}
func (s silent) Newest(ctx context.Context, _ runs.Query) (gather.Found, error) {
	return s.About(ctx, runs.Object{})
}

// A user's operator makes a Deployment, our controllers make its ReplicaSet and write its status, and the operator reacts.
// The chain of causes leads from one manager to the other and back. A manager that does not answer is named.
func TestTheChainLeadsFromOneManagerToTheOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shop := runs.Object{Group: "example.com", Kind: "Shop", Namespace: "ns", Name: "a", UID: "s"}
		web := runs.Object{Group: "apps", Kind: "Deployment", Namespace: "ns", Name: "a", UID: "d"}
		operator, ours := newRecord(t), newRecord(t)
		shops, deployments := operator.Loop("shop", shop.Group, shop.Kind), ours.Loop("deployment", web.Group, web.Kind)
		now := time.Now()
		add := func(loop *runs.Loop, after int, causes workqueue.Causes, w runs.Write) {
			runs.Add(loop, object.Key{Namespace: "ns", Name: "a"}, &runs.Ended{Began: now.Add(time.Duration(after) * time.Second), Outcome: runs.Done, Causes: causes, Writes: []runs.Write{w}})
		}
		add(shops, 0, because(shop, "10"), runs.Write{Verb: "create", Object: web, Version: "11"})
		add(deployments, 1, because(web, "11"), runs.Write{Verb: "update", Object: web, Subresource: "status", Version: "12"})
		add(shops, 2, because(web, "12"), runs.Write{Verb: "update", Object: shop, Subresource: "status", Version: "13"})

		began := time.Now()
		found, err := gather.Joined(gather.Local(operator), silent{}, gather.Local(ours)).About(t.Context(), shop)
		if err != nil || len(found.Runs) != 2 {
			t.Fatalf("about the Shop there are %+v, %v; want two runs", found.Runs, err)
		}
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("a manager that does not answer costs %v", took)
		}
		if len(found.Unread) != 1 || !strings.Contains(found.Unread[0], "https://10.0.0.9:443 does not answer") {
			t.Errorf("not read are %q, want the manager that does not answer", found.Unread)
		}
		var chain []string
		for origins := found.Runs[0].Origins; len(origins) > 0; origins = origins[0].Origins {
			if origins[0].Run == nil {
				chain = append(chain, origins[0].NotKnown)
				break
			}
			chain = append(chain, origins[0].Run.Controller+" "+origins[0].Write.Version)
		}
		if got, want := strings.Join(chain, " < "), "deployment 12 < shop 11 < "+runs.WrittenByOthers; got != want {
			t.Errorf("the chain is %q, want %q", got, want)
		}
		if found, err := gather.Joined(silent{}, silent{}).Newest(t.Context(), runs.Query{}); err == nil {
			t.Errorf("two managers that do not answer: %+v", found)
		}
	})
}

// A queue has one cause for all changes that come while its key waits. Those of other managers are found too: the operator's new image
// is the reason for a run, although the last change before that run was a status.
func TestChangesThatOneCauseStandsForAreFoundInAllManagers(t *testing.T) {
	shop := runs.Object{Group: "example.com", Kind: "Shop", Namespace: "ns", Name: "a", UID: "s"}
	web := runs.Object{Group: "apps", Kind: "Deployment", Namespace: "ns", Name: "a", UID: "d"}
	now := time.Now()
	add := func(loop *runs.Loop, after int, causes workqueue.Causes, w runs.Write) {
		runs.Add(loop, object.Key{Namespace: "ns", Name: "a"}, &runs.Ended{Began: now.Add(time.Duration(after) * time.Second), Outcome: runs.Done, Causes: causes, Writes: []runs.Write{w}})
	}
	operator, ours := newRecord(t), newRecord(t)
	add(operator.Loop("shop", shop.Group, shop.Kind), 0, because(shop, "20"),
		runs.Write{Verb: "update", Object: web, Version: "21", Fields: []string{"spec.template.spec.containers[web].image"}})
	deployments := ours.Loop("deployment", web.Group, web.Kind)
	add(deployments, 0, because(web, "11"), runs.Write{Verb: "update", Object: web, Subresource: "status", Version: "22"})
	add(operator.Loop("old", shop.Group, shop.Kind), -5, because(shop, "5"), runs.Write{Verb: "update", Object: web, Version: "15"}) // before the cause
	add(operator.Loop("new", shop.Group, shop.Kind), 5, because(shop, "30"), runs.Write{Verb: "update", Object: web, Version: "31"}) // after it
	queue := workqueue.New(workqueue.Options[object.Key]{})
	queue.AddWith(workqueue.Add{Cause: workqueue.Cause{Source: "deployments", Verb: workqueue.Updated, From: "15", Version: "22", Ref: web.Ref()}}, web.Ref().Key)
	item, _ := queue.Get()
	add(deployments, 1, item.Causes, runs.Write{Verb: "create", Object: runs.Object{Group: "apps", Kind: "ReplicaSet", Namespace: "ns", Name: "a-1"}, Version: "23"})

	found, err := gather.Joined(gather.Local(operator), gather.Local(ours)).About(t.Context(), runs.Object{Group: "apps", Kind: "ReplicaSet", Namespace: "ns", Name: "a-1"})
	if err != nil || len(found.Runs) != 1 {
		t.Fatalf("about the ReplicaSet there are %+v, %v; want one run", found.Runs, err)
	}
	var origins []string
	for _, o := range found.Runs[0].Origins {
		origins = append(origins, o.Run.Controller+" "+o.Write.Version)
	}
	if got, want := strings.Join(origins, ", "), "deployment 22, shop 21"; got != want {
		t.Errorf("the run was caused by %q, want %q", got, want)
	}
}
