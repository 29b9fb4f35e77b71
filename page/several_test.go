// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package page_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/setpoint-io/setpoint/explain/gather"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/page"
	"github.com/setpoint-io/setpoint/runs"
)

// joined is a source with the records of two managers.
type joined struct {
	*source
	other *runs.Record
}

func (j joined) Record() gather.Record {
	return gather.Joined(gather.Local(j.record), gather.Local(j.other))
}

// Each manager numbers its own runs. The link of a run opens this run, and not the one of the same number of another manager.
func TestRunsOfTwoManagersWithOneNumber(t *testing.T) {
	s := rollout(t)
	other, err := runs.New(runs.LeastBytes)
	if err != nil {
		t.Fatal(err)
	}
	runs.Add(other.Loop("shop-operator", "apps", "Deployment"), object.Key{Namespace: "shop", Name: "web"}, &runs.Ended{Began: time.Now().Add(-time.Minute), Outcome: runs.Done,
		Writes: []runs.Write{{Verb: "patch", Version: "50", Object: runs.Object{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web", UID: "uid-web"}}}})
	p := page.New(joined{s, other}, page.Options{})
	body := get(t, p, "/o/apps/deployments/shop/web").Body.String()
	links := regexp.MustCompile(`<th scope="row"><a href="([^"]+)">run 1</a></th><td>([^<]+)</td>`).FindAllStringSubmatch(body, -1)
	if len(links) != 2 {
		t.Fatalf("the runs of number 1 are %q, want one of each manager:\n%s", links, body)
	}
	for _, link := range links {
		if opened := get(t, p, link[1]).Body.String(); !strings.Contains(opened, "Run 1 of "+link[2]+"</h2>") || strings.Count(opened, `aria-current="true"`) != 1 {
			t.Errorf("%s does not open the run of %s", link[1], link[2])
		}
	}
	if opened := get(t, p, "/o/apps/deployments/shop/web?run=1").Body.String(); !strings.Contains(opened, "Run 1 of shop-operator") {
		t.Error("the number alone does not open the newest run of the number")
	}
}
