// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package endtoend_test

import (
	"fmt"
	"syscall"
	"testing"

	"github.com/setpoint-io/setpoint/browser/internal/chromium"
)

// A manager that is killed comes back at the same address. The page of "setpoint ui" names it while it is away, its own page
// says since when it is old, and both go on by themselves: what a user changed meanwhile appears in them.
func TestARealManagerIsKilledAndComesBack(t *testing.T) {
	s := realScene(t)
	at := fmt.Sprintf("127.0.0.1:%d", s.ports[0])
	ui, own := openBeside(t, s.ofUI, s.ui, "/"), openTab(t)
	must(t, own.Visit(s.manager.Root+"/o/apps/deployments/outlet/cart"))
	shows(t, own, "deployment-controller, run")
	shows(t, ui, " at "+at)
	mark(t, ui)
	mark(t, own)
	must(t, s.manager.Kill())
	must(t, ui.Until("document.querySelector('[data-part=notice]')?.innerText.includes("+quote(at)+")"))
	must(t, own.Until("!document.getElementById('connection').hidden"))
	shows(t, own, "not connected since")
	must(t, s.run(t.Context(), "--namespace", outlet, "set", "image", "deployment/cart", "nginx=nginx:1.29"))
	must(t, s.startManager(t.Context()))
	must(t, ui.Until("!document.querySelector('[data-part=notice]')"))
	must(t, own.Until("document.getElementById('connection').hidden"))
	shows(t, own, "kubectl-set")
	// The manager that came back has made a second ReplicaSet.
	must(t, own.Until("new Set([...document.querySelectorAll('.tree a[href*=\"/ReplicaSet/\"]')].map(a => a.href)).size > 1"))
	isMarked(t, ui)
	isMarked(t, own)
	isQuiet(t, own, s.manager)
}

// A manager that stands still for a while answers no page. The page of "setpoint ui" says so, and goes on when it answers again.
func TestARealManagerStandsStill(t *testing.T) {
	s := realScene(t)
	ui := openBeside(t, s.ofUI, s.ui, "/")
	row := "[...document.querySelectorAll('tbody th')].some(th => th.innerText.includes('deployment-controller'))"
	must(t, ui.Until(row))
	mark(t, ui)
	process := s.manager.Cmd.Process
	must(t, process.Signal(syscall.SIGSTOP))
	t.Cleanup(func() { must(t, process.Signal(syscall.SIGCONT)) })
	must(t, ui.Until("document.querySelector('[data-part=notice]')?.innerText.includes('Not known') && !"+row))
	must(t, process.Signal(syscall.SIGCONT))
	must(t, ui.Until("!document.querySelector('[data-part=notice]') && "+row))
	isMarked(t, ui)
}

// A person reads the loops of both managers, goes to what happened and from there to a Deployment that was scaled, opens the run
// that kubectl caused, and reads its causes and the fields of its writes. The chain leads on to the run of the other manager, and
// the arrow keys go through time.
func TestAPersonReadsARealCluster(t *testing.T) {
	t.Parallel()
	s := realScene(t)
	for _, args := range [][]string{
		{"create", "deployment", "shelf", "--image=nginx:1.28", "--replicas=1"},
		{"rollout", "status", "deployment/shelf", "--timeout=60s"},
		{"scale", "deployment/shelf", "--replicas=2"},
		{"rollout", "status", "deployment/shelf", "--timeout=60s"},
	} {
		must(t, s.run(t.Context(), append([]string{"--namespace", shopping}, args...)...))
	}
	tab := openBeside(t, s.ofUp, s.up, "/")
	for _, loop := range []string{"deployment-controller", "replicaset-controller"} {
		must(t, tab.Until("[...document.querySelectorAll('tbody th')].some(th => th.innerText.includes("+quote(loop)+"))"))
	}
	must(t, tab.Click("nav a[href='/changes']"))
	shows(t, tab, "in all namespaces")
	group := `[...document.querySelectorAll("details.change")].find(d => d.querySelector("a[href$='/shop/shelf']"))`
	must(t, tab.Until(group))
	id, err := chromium.Evaluate[string](tab, "CSS.escape("+group+".id)")
	must(t, err)
	must(t, tab.Click("#"+id+" summary"))
	must(t, tab.Click("details[open] a[href$='/shop/shelf']"))
	shows(t, tab, "why it is so")
	must(t, tab.Until("location.pathname.endsWith('/shop/shelf') && document.querySelector('#scrubber')"))
	links := func(controller string) string {
		return "[...document.querySelectorAll('ol.chain li a')].find(a => a.innerText.startsWith(" + quote(controller) + "))"
	}
	must(t, tab.Until(links("deployment-controller")+" && "+links("replicaset-controller")))
	must(t, tab.Click("ol.chain a[href*='run=']"))
	shows(t, tab, "of deployment-controller")
	must(t, tab.Until("document.querySelector('#run .indent')?.innerText.includes('shop/shelf')"))
	must(t, tab.Until("[...document.querySelectorAll('#run .fields li')].some(li => li.innerText === 'spec.replicas')"))
	must(t, tab.Click("#run a[href$='/shop/shelf']")) // closes the run
	must(t, tab.Until("!document.querySelector('#run h3') && document.querySelector('#scrubber') && document.readyState === 'complete'"))
	_, err = chromium.Evaluate[int](tab, "document.getElementById('scrubber').focus(), 1")
	must(t, err)
	must(t, tab.Press(chromium.ArrowLeft+chromium.ArrowLeft))
	must(t, tab.Until("location.search.includes('at=') && document.querySelector('#at .rows')"))
	must(t, tab.Click("#at .rows a[href*='run=']")) // the run that was the last one by then
	must(t, tab.Until("document.querySelector('#run h3')"))
}

// A change by kubectl appears in three tabs without a new page: two of one browser at "setpoint up", and one at "setpoint ui".
func TestARealChangeAppearsInAllTabs(t *testing.T) {
	t.Parallel()
	s := realScene(t)
	tabs := map[string]*chromium.Tab{
		"the object":            openBeside(t, s.ofUp, s.up, "/o/apps/deployments/shop/web"),
		"what happened":         openBeside(t, s.ofUp, s.up, "/changes?namespace=shop"),
		"what happened, the ui": openBeside(t, s.ofUI, s.ui, "/changes?namespace=shop"),
	}
	for _, tab := range tabs {
		must(t, tab.Until("document.querySelector('[data-part=head]') && document.readyState === 'complete'"))
		mark(t, tab)
	}
	must(t, s.run(t.Context(), "--namespace", shopping, "set", "image", "deployment/web", "nginx=nginx:1.29"))
	for name, tab := range tabs {
		if err := tab.Until("document.body.innerText.includes('kubectl-set')"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		isMarked(t, tab)
	}
	// The rollout goes on in the view of the object until its end.
	object := tabs["the object"]
	must(t, object.Until("new Set([...document.querySelectorAll('.tree a[href*=\"/ReplicaSet/\"]')].map(a => a.href)).size > 1"))
	shows(t, object, "all is as it should be")
	isMarked(t, object)
}
