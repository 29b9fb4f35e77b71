// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"context"
	"errors"

	"github.com/setpoint-io/setpoint/explain"
	"github.com/setpoint-io/setpoint/runs"
)

// Record answers questions about the runs of controllers. Its methods are safe for concurrent use.
type Record interface {
	// About returns the newest runs about an object with what led to each of them, and the reasons that controllers state
	// about it at present. An error says why the record cannot be read.
	About(ctx context.Context, o runs.Object) (Found, error)
	// Newest returns the runs that a query chooses, the newest first and without what led to them, and the reasons that
	// controllers state at present. The query's zero value chooses all runs.
	Newest(ctx context.Context, q runs.Query) (Found, error)
}

// Found is what a record has. Its JSON is that of /debug/runs of a manager.
type Found struct {
	Stats   runs.Stats       `json:"stats"`
	Present []runs.Run       `json:"present"` // the last runs of their keys, if they state reasons
	Runs    []explain.Traced `json:"runs"`    // the newest first
	More    bool             `json:"more"`    // there are more runs than were asked for
	// Loops are what the loops do at present about the object that was asked for.
	Loops []runs.KeyState `json:"loops,omitempty"`
	// HiddenRuns and Hidden are how many runs are about objects that the user may not get, and how many names of objects are
	// left out.
	HiddenRuns int `json:"hiddenRuns,omitempty"`
	Hidden     int `json:"hidden,omitempty"`
	// Unread are sentences about what could not be read: managers that did not answer.
	Unread []string `json:"unread,omitempty"`
}

// mostRuns is how many runs About returns at most.
const mostRuns = 60

// None is a record that cannot be read. why says the reason.
func None(why string) Record { return none{errors.New(why)} }

type none struct{ err error }

func (n none) About(context.Context, runs.Object) (Found, error) { return Found{}, n.err }
func (n none) Newest(context.Context, runs.Query) (Found, error) { return Found{}, n.err }

// Local is the record of this process. A nil record says that runs are not recorded.
func Local(r *runs.Record) Record {
	if r == nil {
		return None("this process does not record runs")
	}
	return local{r}
}

type local struct{ record *runs.Record }

// WithLoops is a record that also says what loops do at present about an object, such as KeyStates of a manager of this process.
func WithLoops(r Record, states func(runs.Object) []runs.KeyState) Record {
	return withLoops{r, states}
}

type withLoops struct {
	Record
	states func(runs.Object) []runs.KeyState
}

// About implements Record.
func (w withLoops) About(ctx context.Context, o runs.Object) (Found, error) {
	found, err := w.Record.About(ctx, o)
	if err == nil {
		found.Loops = append(found.Loops, w.states(o)...)
	}
	return found, err
}

// About implements Record.
func (l local) About(ctx context.Context, o runs.Object) (Found, error) {
	found, err := l.Newest(ctx, runs.Query{Object: o, Limit: mostRuns})
	for i := range found.Runs {
		found.Runs[i].Origins = l.record.Origins(&found.Runs[i].Run)
	}
	return found, err
}

// Newest implements Record.
func (l local) Newest(_ context.Context, q runs.Query) (Found, error) {
	found := Found{Stats: l.record.Stats(), Present: l.record.Present(q)}
	all, more := l.record.Find(q)
	found.More = more
	for _, run := range all {
		found.Runs = append(found.Runs, explain.Traced{Run: run})
	}
	return found, nil
}
