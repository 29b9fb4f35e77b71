// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"context"
	"io"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// timestampFormat is that of a kubelet's logs (RFC3339NanoFixed in pkg/kubelet/types
// of Kubernetes 1.37).
const timestampFormat = "2006-01-02T15:04:05.000000000Z07:00"

// logWriter writes the lines of one log for a request.
type logWriter struct {
	logRequest
	out     io.Writer
	flush   func() error
	next    int   // the number of the next line, of all that the log has ever had
	written int64 // bytes
}

// write writes the log as it is and, to a request that follows, what comes until the
// log or ctx ends. read returns what the log holds at the moment.
func (w *logWriter) write(ctx context.Context, read func() view) error {
	now := read()
	if total := now.dropped + len(now.lines); w.tail >= 0 && w.tail < int64(total) {
		w.next = total - int(w.tail)
	}
	for {
		full, err := w.lines(now)
		if err != nil || full || now.ended || !w.follow {
			return err
		}
		if err := w.flush(); err != nil {
			return err
		}
		select {
		case <-now.changed:
			now = read()
		case <-ctx.Done():
			return nil
		}
	}
}

// lines writes the lines that were not written yet, and reports whether the limit of
// the request is reached.
func (w *logWriter) lines(now view) (full bool, err error) {
	w.next = max(w.next, now.dropped)
	for ; w.next < now.dropped+len(now.lines); w.next++ {
		line := now.lines[w.next-now.dropped]
		// The lines have times in whole seconds.
		if line.at.Before(w.since.Truncate(time.Second)) || w.stream == corev1.LogStreamStderr {
			continue
		}
		text := line.text + "\n"
		if w.timestamps {
			text = line.at.Format(timestampFormat) + " " + text
		}
		if w.limit >= 0 && int64(len(text)) >= w.limit-w.written {
			_, err := io.WriteString(w.out, text[:w.limit-w.written])
			return true, err
		}
		n, err := io.WriteString(w.out, text)
		w.written += int64(n)
		if err != nil {
			return false, err
		}
	}
	return false, nil
}
