(** It is not about nothing: a small server for which all that the theorem asks for holds, and a life of it.

    Its volume is one number. Three calls: read it, write it (so that it lasts, or not), and wait until all lasts. *)
From Tansy Require Export Clients.

Inductive op := Get | Put (x : nat) (sync : bool) | Sync.
Definition body (o : op) : program nat nat :=
  match o with Get => Read 0 (λ x, Ret x) | Put x _ => Write 0 x (Ret 0) | Sync => Ret 0 end.
(** Of itself the server writes anew what stands there. *)
Definition own : program nat nat := Read 0 (λ x, Write 0 x (Ret 0)).
Definition stable (o : op) : bool := match o with Put _ sync => sync | _ => false end.
Definition flush (o : op) (r : nat) : bool := match o with Sync => true | _ => false end.
Definition ok (r : nat) : bool := true.
Definition allowed (v : nat) (o : op) (r v' : nat) : Prop :=
  match o with Get => r = v ∧ v' = v | Put x _ => r = 0 ∧ v' = x | Sync => r = 0 ∧ v' = v end.
Definition shed (v v' : nat) : Prop := v' = v.
Definition keys : gset key := {[0]}.
Definition cell (st : nat) (k : key) : nat := st.
Definition abs (data : gmap key nat) (v : nat) : Prop := data !! 0 = Some v.
Definition free (st : nat) (k : key) : Prop := False.
Definition zero (n : nat) : Prop := n = 0.

Lemma alone : Sequential keys cell body own ok free zero zero allowed shed abs.
Proof.
  split.
  - intros o data v r data' Ha Hr _. unfold abs in *. destruct o; simpl in *; inversion Hr; subst; simplify_eq.
    + match goal with H : run (Ret _) _ _ _ |- _ => inversion H; subst end. simplify_map_eq. eauto.
    + match goal with H : run (Ret _) _ _ _ |- _ => inversion H; subst end. eexists. split; [done|]. by simplify_map_eq.
    + eauto.
  - done.
  - intros data v r data' Ha Hr _. unfold abs, shed in *.
    inversion Hr as [|? ? ? ? ? ? Hx Hw| |]; subst. inversion Hw as [| |? ? ? ? ? ? Hret|]; subst.
    inversion Hret; subst. simplify_eq. exists v. split; [done|]. by simplify_map_eq.
  - intros st w data data' v Hd Hd' Hs. unfold abs. assert (0 ∈ keys) as H0 by set_solver.
    rewrite (Hd 0 H0) (Hd' 0 H0) (Hs 0 H0); [done|]. by intros [].
  - unfold abs. intros data v v' H H'. congruence.
  - intros w ->. exists 0. split; [done|]. unfold abs. apply (DataIs keys cell 0 0). set_solver.
Qed.

(** A life, from its acts, the states that its commits make, and, at each moment, lb, logs, and stab. *)
Notation act := (act op nat nat).
Notation its_life := (life (Obj:=nat) (Vol:=nat) (Op:=op) (Res:=nat)).
Definition follow (p : nat) (ph : phase (Obj:=nat) (Op:=op) (Res:=nat)) (a : act) : phase :=
  match ph, a with
  | Away, Comes _ o => Came o
  | Came o, Closes _ l r => Closed o l r p
  | Came o, Again _ | Closed o _ _ _, Again _ => Came o
  | Closed o l r q, Points _ n => Pointed o l r q n
  | _, _ => Over
  end.
Fixpoint phase_at (acts : list act) (vs : nat → list nat) (t i : nat) : phase :=
  match t with
  | 0 => Away
  | S t => match acts !! t with
           | Some a => if decide (of_call a = Some i) then follow (length (vs t) - 1) (phase_at acts vs t i) a else phase_at acts vs t i
           | None => phase_at acts vs t i
           end
  end.
Definition a_life acts vs lb logs stab : its_life :=
  Life acts vs lb logs stab (phase_at acts vs).
Lemma others acts vs t a i : acts !! t = Some a → of_call a ≠ Some i → phase_at acts vs (S t) i = phase_at acts vs t i.
Proof. intros Ha Hi. simpl. rewrite Ha. by rewrite decide_False. Qed.

(** A stable write, answered when its commit is durable; a read, whose first attempt has seen what was there before; and
    a write that is not stable, answered at once, though it had to be tried again, and the server frees something
    between. *)
Definition w1 : log nat := [OpWrite 0 1].
Definition w2 : log nat := [OpWrite 0 2].
Definition anew : log nat := [OpRead 0 1; OpWrite 0 1].
Definition a_life_of_it : its_life :=
  let acts := [Comes 1 (Put 1 true); Comes 2 Get; Closes 1 w1 0; Closes 2 [OpRead 0 0] 0; Again 2; Points 1 1;
               Closes 2 [OpRead 0 1] 1; Works (* a barrier *); Answers 1 0 1; Answers 2 1 1; Comes 3 (Put 2 false);
               Closes 3 w2 0; Again 3; Frees anew 0 2; Closes 3 w2 0; Points 3 3; Answers 3 0 1] in
  a_life acts
    (λ t, if decide (t ≤ 5) then [0] else if decide (t ≤ 13) then [0; 1] else if decide (t ≤ 15) then [0; 1;
      1] else [0; 1; 1; 2])
    (λ t, if decide (t ≤ 7) then 0 else 1)
    (λ t, if decide (t ≤ 5) then ∅ else if decide (t ≤ 13) then {[1 := w1]}
          else if decide (t ≤ 15) then <[2 := anew]> {[1 := w1]} else <[3 := w2]> (<[2 := anew]> {[1 := w1]}))
    (λ t, if decide (t ≤ 5) then ∅ else {[0 := 1]}).

(** The tactic looks at each moment. *)
Ltac at_each_below n H t :=
  lazymatch n with
  | 0 => simpl in H; done
  | S ?m => destruct t as [|t]; [simpl in H; simplify_eq; try done|at_each_below m H t]
  end.
Ltac at_each H t := unfold at_ in H; at_each_below 18 H t.

Lemma serial_none v : Serial keys cell ∅ [v] ∧ Complete (∅ : gmap nat (log nat)) [v].
Proof. split; [by intros n l; rewrite lookup_empty|]. intros n Hn. simpl in Hn. lia. Qed.
Lemma leads_put x v : Leads keys cell [OpWrite 0 x] v x.
Proof.
  split; [intros [|i] k o Hi; simpl in Hi; [done|by destruct i]|].
  intros k ->%elem_of_singleton. unfold Writes. simpl. by rewrite lookup_insert.
Qed.
Lemma serial_one v x : Serial keys cell {[1 := [OpWrite 0 x]]} [v; x] ∧ Complete ({[1 := [OpWrite 0 x]]} : gmap nat (log nat)) [v; x].
Proof.
  split.
  - intros n l [<- <-]%lookup_singleton_Some. split; [lia|]. exists v, x. split_and!; [done..|apply leads_put].
  - intros [|[|n]] Hn; simpl in Hn; [lia| |lia]. rewrite lookup_singleton. eauto.
Qed.
Lemma leads_anew v : Leads keys cell [OpRead 0 v; OpWrite 0 v] v v.
Proof.
  split; [intros [|[|i]] k o Hi; simpl in Hi; simplify_eq; try done|].
  intros k ->%elem_of_singleton. unfold Writes. simpl. by rewrite lookup_insert.
Qed.
Lemma serial_more (m : gmap nat (log nat)) vs l v x : Serial keys cell m vs ∧ Complete m vs → last vs = Some v →
  Leads keys cell l v x →
    Serial keys cell (<[length vs := l]> m) (vs ++ [x]) ∧ Complete (<[length vs := l]> m) (vs ++ [x]).
Proof.
  intros [HS HC] Hv HL. assert (0 < length vs) as Hpos by (destruct vs; simpl in *; [done|lia]).
  rewrite last_lookup -Nat.sub_1_r in Hv. split.
  - intros n l' [[<- <-]|[Hn Hl]]%lookup_insert_Some.
    + split; [done|]. exists v, x.
      split; [rewrite lookup_app_l; [done|lia]|]. split; [by apply list_lookup_middle|done].
    + destruct (HS n l' Hl) as (?&st0&st1&H0&H1&?). split; [done|]. exists st0, st1.
      split; [by apply lookup_app_l_Some|]. split; [by apply lookup_app_l_Some|done].
  - intros n Hn. rewrite app_length /= in Hn. destruct (decide (n = length vs)) as [->|Hne].
    + rewrite lookup_insert. eauto.
    + rewrite lookup_insert_ne; [|done]. apply HC. lia.
Qed.

Lemma it_frees : let m : gmap nat (log nat) := <[2 := anew]> {[1 := w1]} in Serial keys cell m [0; 1;
  1] ∧ Complete m [0; 1; 1].
Proof. apply (serial_more _ [0; 1] anew 1 1 (serial_one 0 1)); [done|apply leads_anew]. Qed.

Lemma it_keeps_the_contracts : Contracts keys cell body own ok stable flush a_life_of_it.
Proof.
  split.
  - split; [done| |by intros t a i; apply others|].
    + intros t a i Ha Hi. at_each Ha t; simpl in Hi; simplify_eq; simpl; repeat constructor; vm_compute; congruence.
    + intros t l r n Ha. at_each Ha t; simplify_eq. split; [repeat constructor|done].
  - intros t Ht. unfold ending in Ht; simpl in *. repeat case_decide; try lia; split_and!; try done; try lia.
    all: try (by exists []); try (by exists [1]); try (by exists [2]).
    + apply map_empty_subseteq.
    + by apply insert_subseteq.
    + by apply insert_subseteq.
  - intros t _. simpl. repeat case_decide; [apply serial_none|apply serial_one|apply it_frees|].
    apply (serial_more _ [0; 1; 1] w2 1 2 it_frees); [done|apply leads_put].
  - split.
    + intros t i n o l r p Ha Hp. at_each Ha t; vm_compute in Hp; simplify_eq; by split_and!.
    + intros t l r n Ha. at_each Ha t; simplify_eq; by split_and!.
    + intros t n Ht Hn [l Hl]. unfold ending in Ht; simpl in *. repeat case_decide; try lia; try congruence.
      * assert (t = 5) as -> by lia. left. exists 1. by apply lookup_singleton_Some in Hl as [<- _].
      * assert (t = 13) as -> by lia. right. exists anew, 0.
        apply lookup_insert_Some in Hl as [[<- _]|[_ Hl]]; [done|congruence].
      * assert (t = 15) as -> by lia. left. exists 3.
        apply lookup_insert_Some in Hl as [[<- _]|[_ Hl]]; [done|congruence].
  - intros t i l r Ha. at_each Ha t; eexists; (split; [done|]); intros [|j] k o Hj; simpl in Hj; simplify_eq; try (by destruct j).
    all: split; [set_solver|done].
  - split.
    + intros t i r need Ha. at_each Ha t; simpl; lia.
    + intros t i r need o l p n Ha Hp Hs. at_each Ha t; vm_compute in Hp; simplify_eq; done || lia.
    + intros t i r need o l p Ha Hp Hf. at_each Ha t; vm_compute in Hp; simplify_eq.
    + intros t Ht. simpl. repeat case_decide; simpl; lia.
  - split.
    + intros t i n o l r p k Ha Hp Hs Hk. at_each Ha t; vm_compute in Hp; simplify_eq; try done.
      destruct Hk as [x Hk]. unfold Writes in Hk. simpl in Hk.
      apply lookup_insert_Some in Hk as [[<- _]|[_ Hk]]; [by exists 1|by rewrite lookup_empty in Hk].
    + intros t k n _ Hn. simpl in *. repeat case_decide; simplify_map_eq; try lia; eauto.
    + intros s t i l r r' need k n Hs Ht _ Htouch Hn. simpl in Hn. case_decide; [by rewrite lookup_empty in Hn|].
      apply lookup_singleton_Some in Hn as [<- <-]. at_each Ht t; lia.
Qed.

Theorem it_happens : ∃ h w L w', execution keys cell body own ok stable flush free zero h w ∧ Opens L w ∧
  Contracts keys cell body own ok stable flush L ∧ Recovers keys cell free L 1 w' ∧
  seen L (ending L) = [Call 1 (Put 1 true); Call 2 Get; Reply 1 0; Reply 2 1; Call 3 (Put 2 false); Reply 3 0].
Proof.
  exists [], 0, a_life_of_it, 1.
  split; [by constructor|]. split; [done|]. split; [apply it_keeps_the_contracts|]. split; [|done].
  split; [done|]. exists 0, 1. split; [|by intros k ->%elem_of_singleton].
  split; [done|]. split; [done|]. apply leads_put.
Qed.
(** So the theorem says of it: *)
Corollary clients_of_the_example : ∃ m, trace zero allowed stable flush shed
  [Call 1 (Put 1 true); Call 2 Get; Reply 1 0; Reply 2 1; Call 3 (Put 2 false); Reply 3 0] m.
Proof.
  refine (clients_see_the_specification keys cell body own ok stable flush free zero zero allowed shed abs [] 0
    a_life_of_it alone _ _ _ 17 _).
  - by constructor.
  - done.
  - apply it_keeps_the_contracts.
  - done.
Qed.
