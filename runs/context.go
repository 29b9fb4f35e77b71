// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package runs

// TraceparentAnnotation is the annotation with the trace context of the run that created an object, as a traceparent of
// W3C Trace Context.
// Source: KEP-5915, "Annotation Standard" (a draft).
const TraceparentAnnotation = "tracing.k8s.io/traceparent"

// Propagate has the loops of the record write a trace context on the objects that runs create, and read that of the objects
// that runs are about. of returns the traceparent of the run of a number. It is called while the run lasts, by several
// goroutines at the same time. nil ends that.
func (r *Record) Propagate(of func(number uint64) string) {
	if of == nil {
		r.propagate.Store(nil)
		return
	}
	r.propagate.Store(&of)
}

// Propagates reports whether runs carry a trace context. It is cheap.
func (l *Loop) Propagates() bool { return l.record.propagate.Load() != nil }

// Context returns the number that a run in progress will have, for [Ended.Number], and its traceparent. It takes a number:
// a run calls it once. The traceparent is empty if runs carry none.
func (l *Loop) Context() (number uint64, traceparent string) {
	of := l.record.propagate.Load()
	if of == nil {
		return 0, ""
	}
	l.record.mu.Lock()
	l.record.runs++
	number = l.record.runs
	l.record.mu.Unlock()
	return number, (*of)(number)
}

// numbered returns the number of a run that has ended. The record must be locked.
func (r *Record) numbered(run *Ended) uint64 {
	if run.Number != 0 {
		return run.Number
	}
	r.runs++
	return r.runs
}
