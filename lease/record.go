// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/object"
)

// An attempt is a record that was sent.
type attempt struct {
	renewTime metav1.MicroTime
	sent      instant
}

// mine distinguishes the records of one term from all others. It has the records that
// were sent and whose outcome is not known, and the last one that the server has
// confirmed.
type mine struct {
	identity string
	acquired metav1.MicroTime
	attempts []attempt // the confirmed one first
}

// next returns the record to send at a moment. It differs from all that were sent.
func (m *mine) next(now instant) attempt {
	t := metav1.NewMicroTime(now.wall.Truncate(time.Microsecond))
	for _, a := range m.attempts {
		if !t.After(a.renewTime.Time) { // the clock was set back, or is coarse
			t = metav1.NewMicroTime(a.renewTime.Add(time.Microsecond))
		}
	}
	a := attempt{renewTime: t, sent: now}
	m.attempts = append(m.attempts, a)
	return a
}

// confirm forgets all attempts before one that the server has.
func (m *mine) confirm(a attempt) {
	for i := range m.attempts {
		if m.attempts[i] == a {
			m.attempts = m.attempts[i:]
			return
		}
	}
}

// find returns the attempt that made a record.
func (m *mine) find(l *coordinationv1.Lease) (attempt, bool) {
	if holder(l) != m.identity || l.Spec.AcquireTime == nil || !l.Spec.AcquireTime.Equal(&m.acquired) || l.Spec.RenewTime == nil {
		return attempt{}, false
	}
	for _, a := range m.attempts {
		if l.Spec.RenewTime.Equal(&a.renewTime) {
			return a, true
		}
	}
	return attempt{}, false
}

// taken returns the lease as one that m holds by an attempt. transitions counts the
// changes of the holder, for people. What else is in the lease stays.
func (m *mine) taken(l *coordinationv1.Lease, a attempt, t Timing, transitions int32) *coordinationv1.Lease {
	l = l.DeepCopy()
	delete(l.Annotations, wordAnnotation) // it was for this term
	seconds := int32(t.Duration / time.Second)
	l.Spec.HolderIdentity, l.Spec.LeaseDurationSeconds = &m.identity, &seconds
	l.Spec.AcquireTime, l.Spec.RenewTime, l.Spec.LeaseTransitions = &m.acquired, &a.renewTime, &transitions
	return l
}

// wordAnnotation holds what a holder that released the lease left for the next one.
const wordAnnotation = "setpoint.io/left-by-last-holder"

// released returns the lease without a holder, in the form of client-go.
func released(l *coordinationv1.Lease, now instant, word string) *coordinationv1.Lease {
	l = l.DeepCopy()
	if word != "" {
		if l.Annotations == nil {
			l.Annotations = map[string]string{}
		}
		l.Annotations[wordAnnotation] = word
	}
	none, second, at := "", int32(1), metav1.NewMicroTime(now.wall)
	l.Spec.HolderIdentity, l.Spec.LeaseDurationSeconds, l.Spec.AcquireTime, l.Spec.RenewTime = &none, &second, &at, &at
	return l
}

func holder(l *coordinationv1.Lease) string {
	if l.Spec.HolderIdentity == nil {
		return ""
	}
	return *l.Spec.HolderIdentity
}

func transitions(l *coordinationv1.Lease) int32 {
	if l.Spec.LeaseTransitions == nil {
		return 0
	}
	return *l.Spec.LeaseTransitions
}

// sighting is the last record of others, and when it was received.
type sighting struct {
	lease *coordinationv1.Lease
	at    instant
}

// note takes in a record. A record that equals the last one is not a renewal: a label may
// have been put on the Lease.
func (s *sighting) note(l *coordinationv1.Lease, now instant) {
	if s.lease == nil || !sameRecord(s.lease, l) {
		s.at = now
	}
	s.lease = l
}

func sameRecord(a, b *coordinationv1.Lease) bool {
	return a.UID == b.UID && holder(a) == holder(b) && transitions(a) == transitions(b) &&
		a.Spec.RenewTime.Equal(b.Spec.RenewTime) && a.Spec.AcquireTime.Equal(b.Spec.AcquireTime)
}

// left is how long the record is still to be respected. usual stands in for a duration
// that it does not name.
func (s *sighting) left(now instant, usual time.Duration) time.Duration {
	if s.lease == nil || holder(s.lease) == "" {
		return 0
	}
	duration := usual
	if seconds := s.lease.Spec.LeaseDurationSeconds; seconds != nil && *seconds > 0 {
		duration = time.Duration(*seconds) * time.Second
	}
	return max(duration-now.atLeast(s.at), 0)
}

func versionOf(l *coordinationv1.Lease) object.Version {
	v, err := object.ParseVersion(l.ResourceVersion)
	if err != nil {
		return "" // older than all: it is not taken for news
	}
	return v
}
