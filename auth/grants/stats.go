package grants

import "sync/atomic"

// counters of a Manager; read by Stats.
type counters struct{ asked, renewed, failed, superseded, ended atomic.Int64 }

// Stats counts what a Manager did for logins since it was made.
type Stats struct {
	Asked      int64 // requests to token endpoints for a renewal
	Renewed    int64 // renewals whose tokens were stored
	Failed     int64 // renewals that failed and will be tried again
	Superseded int64 // renewals that another process had made meanwhile
	Ended      int64 // logins that their authorization server has ended
}

// Stats returns the counts so far.
func (m *Manager) Stats() Stats {
	c := &m.env.count
	return Stats{
		Asked: c.asked.Load(), Renewed: c.renewed.Load(), Failed: c.failed.Load(),
		Superseded: c.superseded.Load(), Ended: c.ended.Load(),
	}
}
